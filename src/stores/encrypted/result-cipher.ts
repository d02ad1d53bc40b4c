import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  type DecipherGCM,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { textOfParts } from '../../base/digest.js'

/** The record and the fingerprint that a result is bound to, and without which it cannot be decrypted. */
export interface AssociatedData {
  readonly recordId: string
  readonly fingerprint: string
}

/** Encrypts results for storage, and decrypts them. Both functions throw only if the cipher itself fails. */
export interface ResultCipher {
  /** Encrypts with the current key. */
  seal(result: Uint8Array, associatedData: AssociatedData): Uint8Array
  /**
   * Decrypts. Returns `undefined` if none of the keys has encrypted it for this record and fingerprint, or
   * if it is damaged.
   */
  open(sealed: Uint8Array, associatedData: AssociatedData): Uint8Array | undefined
}

const CIPHER = 'aes-256-gcm'
/** RFC 7518, section 5.3. */
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Creates a cipher for compact JWE (RFC 7516) with keys of 32 bytes, which are copied. */
export function createResultCipher(
  bytesById: ReadonlyMap<string, Uint8Array>,
  current: string,
): ResultCipher {
  // Keys are found by the whole header, so that a header with another parameter or spelling has none.
  const keys = new Map([...bytesById].map(([id, bytes]) => [headerOf(id), createSecretKey(bytes)]))
  const currentHeader = headerOf(current)
  const currentKey = keys.get(currentHeader) as KeyObject

  return {
    seal(result, associatedData) {
      // Random, because all receivers encrypt with the same key.
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, currentKey, nonce).setAAD(Buffer.from(currentHeader))
      const ciphertext = cipher.update(Buffer.concat([prefixOf(associatedData), result]))
      // `final` returns no bytes, because GCM has no padding.
      cipher.final()
      const parts = [nonce, ciphertext, cipher.getAuthTag()].map((part) =>
        part.toString('base64url'),
      )
      return Buffer.from(`${currentHeader}..${parts.join('.')}`, 'latin1')
    },
    open(sealed, associatedData) {
      const [header = '', ...parts] = bufferOf(sealed).toString('latin1').split('.')
      const [encryptedKey, nonce, ciphertext, tag] = parts.map(decode)
      const key = keys.get(header)
      const isSealed = parts.length === 4 && encryptedKey?.byteLength === 0
      if (!isSealed || key === undefined || ciphertext === undefined) return undefined
      if (nonce?.byteLength !== NONCE_BYTES || tag?.byteLength !== TAG_BYTES) return undefined
      const decipher = createDecipheriv(CIPHER, key, nonce)
      const plaintext = decipher.setAAD(Buffer.from(header)).setAuthTag(tag).update(ciphertext)
      if (!isAuthentic(decipher)) return undefined
      const prefix = prefixOf(associatedData)
      const isBound = prefix.equals(plaintext.subarray(0, prefix.byteLength))
      return isBound ? plaintext.subarray(prefix.byteLength) : undefined
    },
  }
}

/**
 * The encoded header of a result. `dir` avoids a wrapped key per result, at the cost of a limit of 2^32
 * results per key.
 */
const headerOf = (kid: string): string =>
  Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM', kid })).toString('base64url')

/** Returns `undefined` for a second spelling of the bytes: Node ignores white space, padding and unused bits. */
function decode(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

/** With a tag of the right length, `final` fails only if the tag does not fit the key and the text. */
function isAuthentic(decipher: DecipherGCM): boolean {
  try {
    decipher.final()
    return true
  } catch {
    return false
  }
}

/** Encodes the length of each part, so that no part of a result can be taken for the prefix. */
const prefixOf = ({ recordId, fingerprint }: AssociatedData): Buffer =>
  Buffer.from(textOfParts([recordId, fingerprint]))

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)
