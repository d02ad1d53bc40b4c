import type { BadUser } from './bad-user.js'
import { BAD_LOGIN_METHODS } from './login-methods.js'
import { BAD_RECIPES } from './recipes.js'
import { BAD_RECORDS } from './records.js'
import { BAD_ROLES } from './roles.js'
import { BAD_TOTP_DEVICES } from './totp-devices.js'

export { ALL_FEATURES, type BadUser, KNOWN } from './bad-user.js'

/** Of validation, stand-in and core the same answer is expected. */
export const BAD_USERS: readonly BadUser[] = [
  ...BAD_RECORDS,
  ...BAD_ROLES,
  ...BAD_TOTP_DEVICES,
  ...BAD_LOGIN_METHODS,
  ...BAD_RECIPES,
]

/** Whether a text of the core is the one that is expected, whose `…` stands for anything. */
export function isTheText(expected: string, given: string): boolean {
  const [start = '', end] = expected.split('…')
  if (end === undefined) return given === expected
  return given.length >= start.length + end.length && given.startsWith(start) && given.endsWith(end)
}
