/** A value of the `Authorization` header that no receiver may accept. */
export interface HostileToken {
  /** Unique in the catalogue. */
  readonly name: string
  /** What would be wrong about accepting it. */
  readonly why: string
  /** The value of the one `Authorization` header; fits the limits that Node has by default. */
  readonly authorization: string
  /** 403 where the token is valid and its caller is not approved, otherwise 401. */
  readonly expect: 401 | 403
}

/** A case as the catalogue's parts write it. */
export type Draft = readonly [name: string, token: string]

/** A group of bearer tokens that share the reason to refuse them. */
export const group = (
  why: string,
  drafts: readonly Draft[],
  expect: 401 | 403 = 401,
): HostileToken[] =>
  drafts.map(([name, token]) => ({ name, why, authorization: `Bearer ${token}`, expect }))

/** The name of a case that puts a value in a place; the right value, which varies, reads `(right)`. */
export function nameOf(place: string, value: unknown, right?: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  const stable = typeof right === 'string' ? text.replaceAll(right, '(right)') : text
  return `${place} ${stable}`.slice(0, MAX_NAME_LENGTH)
}

const MAX_NAME_LENGTH = 100
