import { z } from 'zod'
import { readJsonObject } from '../../base/compact-jws.js'
import {
  externalUserIdOf,
  MAX_EXTERNAL_USER_ID_LENGTH,
} from '../record-validation/external-user-id.js'

/** One login of a user at the legacy issuer. */
export interface LegacyIdentity {
  /** The provider's name at the legacy issuer. */
  readonly provider: string
  /** The connection's name at the legacy issuer. */
  readonly connection: string
  /** The user's id there. */
  readonly userId: string
}

/** What a caller asks for. Says who it is about, and is the source of nothing else. */
export interface MigrationRequest {
  readonly externalUserId: string
  readonly organizationId?: string
  readonly identities: readonly LegacyIdentity[]
}

/** Members that the organization cannot be called; the last would be none. */
export const FIXED_FIELDS: readonly string[] = ['externalUserId', 'identities', '__proto__']

const MAX_CHARACTERS = 256
const MAX_IDENTITIES = 20

/** Text that a database can hold: without U+0000 and without half of a character. */
const text = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((value) => value.isWellFormed() && !value.includes('\0'))

const identity = z.strictObject({
  provider: text(MAX_CHARACTERS),
  connection: text(MAX_CHARACTERS),
  userId: text(MAX_CHARACTERS),
})

const form = z.strictObject({
  // The core would cut it, and know the user by another id.
  externalUserId: text(MAX_EXTERNAL_USER_ID_LENGTH).refine(
    (externalUserId) => externalUserIdOf({ externalUserId }) === externalUserId,
  ),
  identities: z.array(identity).min(1).max(MAX_IDENTITIES),
})

const organization = text(MAX_CHARACTERS).optional()

/** Reads bodies whose organization has this name. Anything of another form is `undefined`. */
export function requestReader(
  organizationField: string,
): (bytes: Uint8Array) => MigrationRequest | undefined {
  return (bytes) => {
    const json = readJsonObject(bytes)
    if (json === undefined) return undefined
    const { [organizationField]: named, ...members } = json.members
    const { data: organizationId, success: isOrganization } = organization.safeParse(named)
    const { data: rest } = form.safeParse(members)
    if (rest === undefined || !isOrganization) return undefined
    const request = { ...rest, ...(organizationId !== undefined && { organizationId }) }
    return namesIn(json.text) === membersOf(request) ? request : undefined
  }
}

const NAME_OR_STRING = /"(?:[^"\\]|\\.)*"([\t\n\r ]*:)?/g

/** Names of members in a JSON text, repeated ones too: parsers differ in which of two they take. */
function namesIn(json: string): number {
  let count = 0
  for (const [, colon] of json.matchAll(NAME_OR_STRING)) if (colon !== undefined) count += 1
  return count
}

const membersOf = (request: MigrationRequest): number =>
  Object.keys(request).length +
  request.identities.reduce((count, one) => count + Object.keys(one).length, 0)
