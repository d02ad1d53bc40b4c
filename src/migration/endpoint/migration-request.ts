import { z } from 'zod'
import { readJsonObject } from '../../base/compact-jws.js'
import { externalUserIdOf, MAX_EXTERNAL_USER_ID_LENGTH } from '../record-validation/normalise.js'

/** One login of a user at the legacy issuer. */
export interface LegacyIdentity {
  /** The provider's name at the legacy issuer. */
  readonly provider: string
  /** The connection's name at the legacy issuer. */
  readonly connection: string
  /** The user's id at the legacy issuer. */
  readonly userId: string
}

/** A parsed request. It only identifies the user; all other data comes from the backend's own store. */
export interface MigrationRequest {
  readonly externalUserId: string
  readonly organizationId?: string
  readonly identities: readonly LegacyIdentity[]
}

/** Names that the organization member cannot have. */
export const FIXED_FIELDS: readonly string[] = ['externalUserId', 'identities']

const MAX_CHARACTERS = 256
const MAX_IDENTITIES = 20

/** Text that a database can store: without U+0000 and lone surrogates. */
const text = (maxLength: number) =>
  z
    .string()
    .min(1)
    .max(maxLength)
    .refine((value) => value.isWellFormed() && !value.includes('\0'))

const identity = z.strictObject({
  provider: text(MAX_CHARACTERS),
  connection: text(MAX_CHARACTERS),
  userId: text(MAX_CHARACTERS),
})

const form = z.strictObject({
  // Refuses an id that the core would trim, because the core would store another id.
  externalUserId: text(MAX_EXTERNAL_USER_ID_LENGTH).refine(
    (externalUserId) => externalUserIdOf({ externalUserId }) === externalUserId,
  ),
  identities: z.array(identity).min(1).max(MAX_IDENTITIES),
})

const organization = text(MAX_CHARACTERS).optional()

/** Returns a parser of bodies with this organization member. It returns `undefined` for an invalid body. */
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
    return namesIn(json.text) === countMembers(request) ? request : undefined
  }
}

const NAME_OR_STRING = /"(?:[^"\\]|\\.)*"([\t\n\r ]*:)?/g

/** Counts member names, including repeated names: parsers differ in which of the members with one name they use. */
function namesIn(json: string): number {
  let count = 0
  for (const [, colon] of json.matchAll(NAME_OR_STRING)) if (colon !== undefined) count += 1
  return count
}

const countMembers = (request: MigrationRequest): number =>
  Object.keys(request).length +
  request.identities.reduce((count, one) => count + Object.keys(one).length, 0)
