import { trimmed } from './core-trim.js'
import { optional, type Reading, required } from './read-field.js'
import { coreTenantId, readTenantIds } from './tenant-ids.js'
import { checkUnknown } from './unknown-fields.js'
import { has, type UserContext } from './validation-context.js'

const MAX_ROLE_LENGTH = 255
const SUFFIX = ' for a user role.'

/** The parts of a role that are compared with the login methods. */
export interface ReadRole {
  readonly field: string
  readonly tenantIds: readonly string[]
}

export function readUserRoles(record: Reading, context: UserContext): ReadRole[] {
  const given = optional(record, 'userRoles', 'array of object') ?? []
  const pairs = new Set<string>()
  return given.map((object, index) => {
    const field = `userRoles[${index}]`
    return readRole({ object, field, suffix: SUFFIX, findings: record.findings }, context, pairs)
  })
}

/** `pairs` has the pairs of role and tenant of all earlier roles. Adds those of this role. */
function readRole(reading: Reading, context: UserContext, pairs: Set<string>): ReadRole {
  const { field, findings } = reading
  const role = required(reading, 'role', 'string')
  const given = required(reading, 'tenantIds', 'array of string')
  if (role !== undefined) {
    checkRole(role, reading, context)
    checkRepeated(role, given ?? [], reading, pairs)
  }
  const tenantIds = readTenantIds(given, reading, context)
  if (given?.length === 0) {
    findings.warn(
      'role_without_tenants',
      `${field}.tenantIds`,
      'The core assigns a role in the tenants named with it: without one the role is lost.',
    )
  }
  checkUnknown(reading, 'role')
  return { field, tenantIds }
}

function checkRepeated(
  role: string,
  tenantIds: readonly string[],
  { field, findings }: Reading,
  pairs: Set<string>,
): void {
  for (const [index, tenantId] of tenantIds.entries()) {
    const pair = JSON.stringify([trimmed(role), coreTenantId(tenantId)])
    if (pairs.has(pair)) findings.refuse('duplicate', `${field}.tenantIds[${index}]`, TWICE)
    pairs.add(pair)
  }
}

const TWICE = 'The record has this role in this tenant twice: the import fails.'

function checkRole(role: string, { field, findings }: Reading, { roles }: UserContext): void {
  const place = `${field}.role`
  if (role.length > MAX_ROLE_LENGTH) {
    findings.refuse('too_long', place, `role ${role} is too long. Max length is 255.`)
  }
  const name = trimmed(role)
  if (roles !== undefined && !has(roles, name)) {
    findings.refuse('role_missing', place, `Role ${name} does not exist.`)
  }
}
