import type { CompactJWEHeaderParameters, CryptoKey } from 'jose'
import { JOSEError, JWEDecryptionFailed, JWEInvalid } from 'jose/errors'
import { textOfParts } from '../../base/digest.js'

/** The record and the fingerprint that a result is bound to, and without which it cannot be decrypted. */
export interface AssociatedData {
  readonly record: string
  readonly fingerprint: string
}

/** Encrypts results for storage, and decrypts them. */
export interface ResultCipher {
  /** Encrypts with the current key. Rejects only if the cipher itself fails. */
  seal(result: Uint8Array, associatedData: AssociatedData): Promise<Uint8Array>
  /**
   * Decrypts. Resolves with `undefined` if none of the keys has encrypted it for this belonging, or if it
   * is damaged. Rejects only if the cipher itself fails.
   */
  open(sealed: Uint8Array, associatedData: AssociatedData): Promise<Uint8Array | undefined>
}

/** `dir` avoids a wrapped key per result, at the cost of a limit of 2^32 results per key. */
const HEADER = { alg: 'dir', enc: 'A256GCM' } as const
const DECRYPT_OPTIONS = {
  keyManagementAlgorithms: [HEADER.alg],
  contentEncryptionAlgorithms: [HEADER.enc],
  maxDecompressedLength: 0,
}

/** Creates a cipher for compact JWE (RFC 7516) with keys of 32 bytes, which are copied. */
export function createResultCipher(
  bytesById: ReadonlyMap<string, Uint8Array>,
  current: string,
): ResultCipher {
  const keys = new Map([...bytesById].map(([id, bytes]) => [id, importKey(bytes)]))
  const jwe = loadJwe()
  // Prevents an unhandled rejection: callers that await it get the error.
  jwe.catch(() => {})

  async function encrypt(plaintext: Uint8Array, kid: string): Promise<string> {
    const key = await keyFor({ ...HEADER, kid })
    const { CompactEncrypt } = await jwe
    return new CompactEncrypt(plaintext).setProtectedHeader({ ...HEADER, kid }).encrypt(key)
  }

  /** @throws JOSEError unless `kid` is one of the keys and the header has no further parameter. */
  function keyFor(header: Partial<CompactJWEHeaderParameters>): Promise<CryptoKey> {
    const { alg: _alg, enc: _enc, kid, ...others } = header
    const key = typeof kid === 'string' ? keys.get(kid) : undefined
    if (key !== undefined && Object.keys(others).length === 0) return key
    throw new JWEInvalid('not a header of ours')
  }

  /** jose throws the same error for a wrong key and a failing cipher, so this tests the cipher. */
  async function assertWorking(): Promise<void> {
    const sealed = await encrypt(new Uint8Array(), current)
    const { compactDecrypt } = await jwe
    await compactDecrypt(sealed, keyFor, DECRYPT_OPTIONS)
  }

  async function decrypt(sealed: string): Promise<Uint8Array | undefined> {
    const { compactDecrypt } = await jwe
    try {
      return (await compactDecrypt(sealed, keyFor, DECRYPT_OPTIONS)).plaintext
    } catch (error) {
      if (error instanceof JWEDecryptionFailed) await assertWorking()
      else if (!(error instanceof JOSEError)) throw error
      return undefined
    }
  }

  return {
    async seal(result, associatedData) {
      const plaintext = Buffer.concat([prefixOf(associatedData), result])
      return Buffer.from(await encrypt(plaintext, current), 'latin1')
    },
    async open(sealed, associatedData) {
      const text = bufferOf(sealed).toString('latin1')
      const plaintext = isCanonical(text) ? await decrypt(text) : undefined
      if (plaintext === undefined) return undefined
      const prefix = prefixOf(associatedData)
      const isBound = prefix.equals(plaintext.subarray(0, prefix.byteLength))
      return isBound ? plaintext.subarray(prefix.byteLength) : undefined
    },
  }
}

/** Loads the encryption of jose only for those who encrypt. */
async function loadJwe() {
  const [{ CompactEncrypt }, { compactDecrypt }] = await Promise.all([
    import('jose/jwe/compact/encrypt'),
    import('jose/jwe/compact/decrypt'),
  ])
  return { CompactEncrypt, compactDecrypt }
}

/** Imports a key once for all results, because an import for each would cost a fifth more. */
function importKey(bytes: Uint8Array): Promise<CryptoKey> {
  const copy = Uint8Array.from(bytes)
  const key = crypto.subtle.importKey('raw', copy, 'AES-GCM', false, ['encrypt', 'decrypt'])
  // Prevents an unhandled rejection: callers that await the key get the error.
  key.catch(() => {})
  return key
}

/** Encodes the length of each part, so that no part of a result can be taken for the prefix. */
const prefixOf = ({ record, fingerprint }: AssociatedData): Buffer =>
  Buffer.from(textOfParts([record, fingerprint]))

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** jose also accepts base64url with white space, padding and unused bits. */
const isCanonical = (jwe: string): boolean =>
  jwe.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
