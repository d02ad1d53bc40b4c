import { isObject, type JsonObject } from '../json-input.js'
import { Refused } from '../reply.js'
import { fieldReader } from './field-reader.js'
import type { Feature, ImportedUser, LoginMethod, ReadContext } from './imported-user.js'
import { trim } from './java-text.js'
import { readLoginMethod } from './read-login-method.js'
import { compareTenants } from './read-tenants.js'
import { readTotpDevice, readUserRole } from './read-user-parts.js'

export type Reading =
  | { readonly user: ImportedUser }
  /** In the words and the order of the core. */
  | { readonly errors: readonly string[] }

const MAX_EXTERNAL_ID_LENGTH = 128

/**
 * Checks a user like the core. Unknown members are ignored.
 * @throws {Refused} if the core answers with 500
 */
export function readUser(value: unknown, context: ReadContext): Reading {
  if (!isObject(value)) {
    const text = JSON.stringify(value)
    throw new Refused(500, `java.lang.IllegalStateException: Not a JSON Object: ${text}`)
  }
  const errors: string[] = []
  const fields = fieldReader(value, '.', errors)
  const givenId = fields.optional('externalUserId', 'string')
  const userMetadata = fields.optional('userMetadata', 'object')
  const userRoles = fields
    .optional('userRoles', 'array of object')
    ?.flatMap((role) => readUserRole(role, context, errors) ?? [])
  const totpDevices = readTotpDevices(fields.optional('totpDevices', 'array of object'))
  const loginMethods = readLoginMethods(fields.required('loginMethods', 'array of object'))
  const externalUserId = readExternalId(givenId)
  compareTenants(userRoles ?? [], loginMethods, { rules: context.rules, errors })
  const primary = primaryMethod(loginMethods)
  if (errors.length > 0 || primary === undefined) return { errors }
  const id = primary.superTokensUserId
  return { user: { id, externalUserId, userMetadata, userRoles, totpDevices, loginMethods } }

  function readTotpDevices(devices: JsonObject[] | undefined) {
    if (devices === undefined || context.features.has('mfa')) {
      return devices?.flatMap((device) => readTotpDevice(device, errors) ?? [])
    }
    errors.push('MFA must be enabled to import totp devices.')
    return undefined
  }

  function readLoginMethods(methods: JsonObject[] | undefined): LoginMethod[] {
    if (methods === undefined) return []
    if (methods.length === 0) errors.push('At least one loginMethod is required.')
    if (methods.length > 1 && !isLinkingEnabled(context.features)) {
      errors.push('Account linking must be enabled to import multiple loginMethods.')
    }
    const primaries = methods.filter((method) => method['isPrimary'] === true)
    for (const _ of primaries.slice(1)) {
      errors.push('No two loginMethods can have isPrimary as true.')
    }
    return methods.flatMap((method) => readLoginMethod(method, context, errors) ?? [])
  }

  function readExternalId(id: string | undefined): string | undefined {
    if (id === undefined) return undefined
    if (id.length > MAX_EXTERNAL_ID_LENGTH) {
      errors.push(`externalUserId ${id} is too long. Max length is ${MAX_EXTERNAL_ID_LENGTH}.`)
    }
    if (context.externalIds.has(id)) {
      errors.push(`externalUserId ${id} is not unique. It is already used by another user.`)
    }
    context.externalIds.add(id)
    return trim(id)
  }
}

/** Either of the two features enables it. */
export function isLinkingEnabled(features: ReadonlySet<Feature>): boolean {
  return features.has('account_linking') || features.has('mfa')
}

/**
 * Returns the method that is marked as primary; otherwise the oldest, or the first of equally old
 * ones.
 */
function primaryMethod(methods: readonly LoginMethod[]): LoginMethod | undefined {
  const [oldest] = methods.toSorted(
    (a, b) => a.timeJoinedInMSSinceEpoch - b.timeJoinedInMSSinceEpoch,
  )
  return methods.find((method) => method.isPrimary) ?? oldest
}
