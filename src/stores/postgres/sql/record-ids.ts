import { textOfParts } from '../../../base/digest.js'
import { hash } from '../../../base/supported-node.js'
import { DEFAULT_SCHEMA } from './literals.js'

/** The ids of a record in the database, and the lock of its runs. */
export interface RecordIds {
  /** A UUID without hyphens: 16 bytes of a digest, without version and variant bits. */
  readonly id: string
  /** 16 bytes of a digest, in hexadecimal. */
  readonly fingerprint: string
  /** The advisory lock that a run of the key holds: a signed 64-bit integer. */
  readonly keyLock: string
}

/** The id of a used token in the database, and the lock for recording it. */
export interface TokenIds {
  /** A UUID like that of a record. */
  readonly id: string
  /** A signed 64-bit integer. */
  readonly lock: string
}

const ID_BYTES = 16

/** Derives the ids from the id of a record and a fingerprint. */
export function recordIds(
  recordId: string,
  fingerprint: string,
  schema: string = DEFAULT_SCHEMA,
): RecordIds {
  // All schemas of a database share the locks, but not the rows.
  const ofKey = bytesOf(['record', schema, recordId])
  const ofRequest = bytesOf(['request', schema, recordId, fingerprint])
  return {
    id: uuidIn(ofKey),
    fingerprint: ofRequest.toString('hex', 0, ID_BYTES),
    keyLock: lockIn(ofKey),
  }
}

/** Derives the ids from the digest that identifies a token. */
export function tokenIds(id: string, schema: string = DEFAULT_SCHEMA): TokenIds {
  const bytes = bytesOf(['token', schema, id])
  return { id: uuidIn(bytes), lock: lockIn(bytes) }
}

/** The lock for sweeping or migrating a schema. */
export const schemaLock = (work: 'sweep' | 'migration', schema: string): string =>
  lockIn(bytesOf([`lock of a ${work}`, schema]))

/** A digest of 32 bytes. The first part names the purpose, so that no two purposes share a digest. */
const bytesOf = (parts: readonly string[]): Buffer => hash('sha256', textOfParts(parts), 'buffer')

const uuidIn = (bytes: Buffer): string => bytes.toString('hex', 0, ID_BYTES)

/** A lock number from the 8 bytes after the id. */
const lockIn = (bytes: Buffer): string => bytes.readBigInt64BE(ID_BYTES).toString()
