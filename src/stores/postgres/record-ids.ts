import { digestOfParts } from '../../base/digest.js'
import { DEFAULT_SCHEMA } from './names.js'

/** Where a record stands in the database, and what its runs lock. */
export interface RecordIds {
  /** A uuid: 16 octets of a digest, without the bits of a version or variant. */
  readonly id: string
  /** 16 octets of a digest, in hexadecimal. */
  readonly fingerprint: string
  /** Lock A, held by whoever runs the key: a signed integer of 64 bits. */
  readonly keyLock: string
  /** Lock B, held by whoever runs this very request. */
  readonly requestLock: string
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
export const recordIds = (
  key: string,
  fingerprint: string,
  schema: string = DEFAULT_SCHEMA,
): RecordIds => ({
  id: uuidOf(['record', key]),
  fingerprint: octetsOf(['fingerprint', fingerprint]).toString('hex'),
  // Locks are shared by all schemas of a database, rows are not.
  keyLock: lockOf(['lock of a key', schema, key]),
  requestLock: lockOf(['lock of a request', schema, key, fingerprint]),
})

/** The ids of a token that is known by this digest. */
export const tokenIds = (id: string, schema: string = DEFAULT_SCHEMA): TokenIds => ({
  id: uuidOf(['token', id]),
  lock: lockOf(['lock of a token', schema, id]),
})

/** The lock of the one who sweeps, or migrates, a schema. */
export const schemaLock = (work: 'sweep' | 'migration', schema: string): string =>
  lockOf([`lock of a ${work}`, schema])

/** The first part tells what it is for, so that nothing serves as two things. */
const octetsOf = (parts: readonly string[]): Buffer =>
  Buffer.from(digestOfParts(parts), 'base64url').subarray(0, ID_OCTETS)

const uuidOf = (parts: readonly string[]): string =>
  octetsOf(parts).toString('hex').replace(UUID_GROUPS, '$1-$2-$3-$4-$5')

const lockOf = (parts: readonly string[]): string => octetsOf(parts).readBigInt64BE().toString()
