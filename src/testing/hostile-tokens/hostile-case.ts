/** A value of the `Authorization` header that every receiver must refuse. */
export interface HostileToken {
  /** Unique in the catalogue. */
  readonly name: string
  /** Why it must be refused. */
  readonly why: string
  /** The value of the one `Authorization` header; within Node's default limits. */
  readonly authorization: string
  /** 403 where the token is valid and its caller is not approved, otherwise 401. */
  readonly expect: 401 | 403
}

/** A case before its group gives the reason and the status. */
export type Draft = readonly [name: string, token: string]

/** Bearer tokens that are to be refused for the same reason. */
export const group = (
  why: string,
  drafts: readonly Draft[],
  expect: 401 | 403 = 401,
): HostileToken[] =>
  drafts.map(([name, token]) => ({ name, why, authorization: `Bearer ${token}`, expect }))

/** The name of a case. In it, the correct value, which varies between runs, reads `(right)`. */
export function nameOf(place: string, value: unknown, right?: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  const stable = typeof right === 'string' ? text.replaceAll(right, '(right)') : text
  return `${place} ${stable}`.slice(0, MAX_NAME_LENGTH)
}

const MAX_NAME_LENGTH = 100
