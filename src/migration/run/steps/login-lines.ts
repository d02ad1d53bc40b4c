import { createDigestTable } from '../../source/digest-table.js'
import type { UserWarning } from '../../user/finding.js'
import { loginKeysOf } from '../../user/login-keys.js'

type LoginHolder = Parameters<typeof loginKeysOf>[0]

/** Which line has a login first, in about 30 octets a login. */
export interface LoginLines {
  /** The earlier line that has one of the user's logins; the others are kept as of `line`. */
  add(user: LoginHolder, line: number): number | undefined
  lineOf(user: LoginHolder): number | undefined
}

export function createLoginLines(): LoginLines {
  const table = createDigestTable()
  const first = (lines: readonly (number | undefined)[]): number | undefined =>
    lines.find((line) => line !== undefined)
  return {
    add: (user, line) => first(loginKeysOf(user).map((key) => table.add(key, line))),
    lineOf: (user) => first(loginKeysOf(user).map(table.find)),
  }
}

/** `where`: the other line. */
export const loginTwice = (where: string): UserWarning => ({
  field: 'loginMethods',
  code: 'login_twice',
  message: `${where} has the same login: only one of the two becomes an account.`,
})
