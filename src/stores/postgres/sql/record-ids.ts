import { hash } from 'node:crypto'
import { textOfParts } from '../../../base/digest.js'
import { DEFAULT_SCHEMA } from '../names.js'

/** Where a record stands in the database, and what its runs lock. */
export interface RecordIds {
  /** A uuid: 16 bytes of a digest, without the bits of a version or variant. */
  readonly id: string
  /** 16 bytes of a digest, in hexadecimal. */
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

const ID_BYTES = 16
const UUID_GROUPS = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/

/** The ids of what is kept under the digest of a key, and of a fingerprint. */
export function recordIds(
  key: string,
  fingerprint: string,
  schema: string = DEFAULT_SCHEMA,
): RecordIds {
  // Locks are shared by all schemas of a database, rows are not.
  const ofKey = bytesOf(['record', schema, key])
  const ofRequest = bytesOf(['request', schema, key, fingerprint])
  return {
    id: uuidIn(ofKey),
    fingerprint: ofRequest.toString('hex', 0, ID_BYTES),
    keyLock: lockIn(ofKey),
  }
}

/** The ids of a token that is known by this digest. */
export function tokenIds(id: string, schema: string = DEFAULT_SCHEMA): TokenIds {
  const bytes = bytesOf(['token', schema, id])
  return { id: uuidIn(bytes), lock: lockIn(bytes) }
}

/** The lock of the one who sweeps, or migrates, a schema. */
export const schemaLock = (work: 'sweep' | 'migration', schema: string): string =>
  lockIn(bytesOf([`lock of a ${work}`, schema]))

/** 32 bytes. The first part tells what they are for, so that nothing serves as two things. */
const bytesOf = (parts: readonly string[]): Buffer => hash('sha256', textOfParts(parts), 'buffer')

const uuidIn = (bytes: Buffer): string =>
  bytes.toString('hex', 0, ID_BYTES).replace(UUID_GROUPS, '$1-$2-$3-$4-$5')

/** Of the bytes that are no part of an id. */
const lockIn = (bytes: Buffer): string => bytes.readBigInt64BE(ID_BYTES).toString()
