import { hash } from 'node:crypto'
import { textOfParts } from '../../../base/digest.js'
import { DEFAULT_SCHEMA } from '../names.js'

/** Where a record stands in the database, and what its runs lock. */
export interface RecordIds {
  /** A uuid: 16 octets of a digest, without the bits of a version or variant. */
  readonly id: string
  /** 16 octets of a digest, in hexadecimal. */
  readonly fingerprint: string
  /** Held by whoever runs the key: a signed integer of 64 bits. */
  readonly keyLock: string
}

/** Where a used token stands in the database, and what whoever records it locks. */
export interface TokenIds {
  /** A uuid as that of a record. */
  readonly id: string
  /** A signed integer of 64 bits. */
  readonly lock: string
}

const ID_OCTETS = 16
const UUID_GROUPS = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/

/** The ids of what is kept under the digest of a key, and of a fingerprint. */
export function recordIds(
  key: string,
  fingerprint: string,
  schema: string = DEFAULT_SCHEMA,
): RecordIds {
  // Locks are shared by all schemas of a database, rows are not.
  const ofKey = octetsOf(['record', schema, key])
  const ofRequest = octetsOf(['request', schema, key, fingerprint])
  return {
    id: uuidIn(ofKey),
    fingerprint: ofRequest.toString('hex', 0, ID_OCTETS),
    keyLock: lockIn(ofKey),
  }
}

/** The ids of a token that is known by this digest. */
export function tokenIds(id: string, schema: string = DEFAULT_SCHEMA): TokenIds {
  const octets = octetsOf(['token', schema, id])
  return { id: uuidIn(octets), lock: lockIn(octets) }
}

/** The lock of the one who sweeps, or migrates, a schema. */
export const schemaLock = (work: 'sweep' | 'migration', schema: string): string =>
  lockIn(octetsOf([`lock of a ${work}`, schema]))

/** 32 octets. The first part tells what they are for, so that nothing serves as two things. */
const octetsOf = (parts: readonly string[]): Buffer => hash('sha256', textOfParts(parts), 'buffer')

const uuidIn = (octets: Buffer): string =>
  octets.toString('hex', 0, ID_OCTETS).replace(UUID_GROUPS, '$1-$2-$3-$4-$5')

/** Of the octets that are no part of an id. */
const lockIn = (octets: Buffer): string => octets.readBigInt64BE(ID_OCTETS).toString()
