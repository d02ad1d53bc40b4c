import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { readJsonObject } from '../../base/compact-jws.js'
import { headerValues } from '../../base/raw-headers.js'
import { externalUserIdOf, MAX_EXTERNAL_USER_ID_LENGTH } from '../record-validation/normalise.js'
import { RequestEnded } from './request-ended.js'

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

/**
 * Parses the body of a request.
 *
 * @throws RequestEnded if it has another form.
 */
export function parseMigrationRequest(bytes: Buffer, organizationField: string): MigrationRequest {
  const { members = {}, text: json = '' } = readJsonObject(bytes) ?? {}
  const { [organizationField]: named, ...others } = members
  const { data: organizationId, success: isOrganization } = organization.safeParse(named)
  const { data: rest } = form.safeParse(others)
  if (rest === undefined || !isOrganization) throw new RequestEnded('body_malformed')
  const request = { ...rest, ...(organizationId !== undefined && { organizationId }) }
  if (namesIn(json) !== countMembers(request)) throw new RequestEnded('body_malformed')
  return request
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

const JSON_IN_UTF8 = /^application\/json[\t ]*(?:;[\t ]*charset=(?:utf-8|"utf-8")[\t ]*)?$/i

/** Whether the headers declare JSON in UTF-8 (RFC 8259), with a single `Content-Type` and no content coding. */
export function isJsonInUtf8(request: IncomingMessage): boolean {
  const [type, ...otherTypes] = headerValues(request, 'content-type')
  const codings = headerValues(request, 'content-encoding')
  return (
    type !== undefined &&
    otherTypes.length === 0 &&
    JSON_IN_UTF8.test(type) &&
    codings.every((coding) => coding.toLowerCase() === 'identity')
  )
}

/**
 * Reads at most `maxBytes` bytes, and discards what follows. `express.json` would read an endless body to its end
 * before it reports that it is too large.
 *
 * @throws RequestEnded if the body is too large or the connection is closed.
 */
export function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const cutOff = (): void => reject(new RequestEnded('body_cut_off'))
    const take = (chunk: Buffer): void => {
      size += chunk.byteLength
      if (size > maxBytes) reject(new RequestEnded('body_too_large'))
      else chunks.push(chunk)
    }
    if (request.destroyed) cutOff()
    if (Number(request.headers['content-length'] ?? 0) > maxBytes)
      reject(new RequestEnded('body_too_large'))
    request
      .on('data', take)
      .on('end', () => resolve(Buffer.concat(chunks)))
      .on('close', cutOff)
      // Without a listener, a later `error` event would end the process.
      .on('error', cutOff)
  })
}
