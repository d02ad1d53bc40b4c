/** A value of the `Authorization` header that every receiver must refuse. */
export interface HostileToken {
  /** Unique in the catalogue. */
  readonly name: string
  /** Why it must be refused. */
  readonly why: string
  /** The value of the only `Authorization` header; within Node's default limits. */
  readonly authorization: string
  /** 403 if the token is valid but its caller is not approved, otherwise 401. */
  readonly expect: 401 | 403
}

/** A case without the reason and the status of its group. */
export type Draft = readonly [name: string, token: string]

/** Makes cases of bearer tokens that must be refused for the same reason. */
export const group = (
  why: string,
  drafts: readonly Draft[],
  expect: 401 | 403 = 401,
): HostileToken[] =>
  drafts.map(([name, token]) => ({ name, why, authorization: `Bearer ${token}`, expect }))

/** The name of a case. `(right)` replaces the correct value, which varies between runs. */
export function nameOf(place: string, value: unknown, right?: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  const stable = typeof right === 'string' ? text.replaceAll(right, '(right)') : text
  return `${place} ${stable}`.slice(0, MAX_NAME_LENGTH)
}

const MAX_NAME_LENGTH = 100
