import type { BadUser } from './bad-user.js'
import { BAD_LOGIN_METHODS } from './login-methods.js'
import { BAD_RECIPES } from './recipes.js'
import { BAD_RECORDS } from './records.js'
import { BAD_ROLES } from './roles.js'
import { BAD_TOTP_DEVICES } from './totp-devices.js'

export { ALL_FEATURES, type BadUser, KNOWN } from './bad-user.js'

/** The validation of the package, the stand-in core and the real core must refuse these users alike. */
export const BAD_USERS: readonly BadUser[] = [
  ...BAD_RECORDS,
  ...BAD_ROLES,
  ...BAD_TOTP_DEVICES,
  ...BAD_LOGIN_METHODS,
  ...BAD_RECIPES,
]

/** Whether the core's text is the expected one, in which `…` stands for any text. */
export function isTheText(expected: string, given: string): boolean {
  const [start = '', end] = expected.split('…')
  if (end === undefined) return given === expected
  return given.length >= start.length + end.length && given.startsWith(start) && given.endsWith(end)
}
