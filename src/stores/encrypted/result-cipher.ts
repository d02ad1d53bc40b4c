import {
  CompactEncrypt,
  type CompactJWEHeaderParameters,
  type CryptoKey,
  compactDecrypt,
  errors,
} from 'jose'
import { textOfParts } from '../../base/digest.js'

/** What a result belongs to. It opens for nothing else. */
export interface Belonging {
  readonly record: string
  readonly fingerprint: string
}

/** How results are turned into what is kept, and back. */
export interface ResultCipher {
  /** Encrypts by the current key. Rejects only when the cipher itself fails. */
  seal(result: Uint8Array, belonging: Belonging): Promise<Uint8Array>
  /**
   * `undefined` for what none of the keys has sealed for this belonging, or what is damaged. Rejects
   * only when the cipher itself fails.
   */
  open(sealed: Uint8Array, belonging: Belonging): Promise<Uint8Array | undefined>
}

/** `dir` spares a key to be wrapped for each result, for a limit of 2^32 results a key. */
const HEADER = { alg: 'dir', enc: 'A256GCM' } as const
const OPENING = {
  keyManagementAlgorithms: [HEADER.alg],
  contentEncryptionAlgorithms: [HEADER.enc],
  maxDecompressedLength: 0,
}

/** Encrypts results as compact JWE (RFC 7516) by keys of 32 bytes, which are copied. */
export function createResultCipher(
  bytesById: ReadonlyMap<string, Uint8Array>,
  current: string,
): ResultCipher {
  const keys = new Map([...bytesById].map(([id, bytes]) => [id, importKey(bytes)]))

  async function encrypt(plaintext: Uint8Array, kid: string): Promise<string> {
    const key = await keyFor({ ...HEADER, kid })
    return new CompactEncrypt(plaintext).setProtectedHeader({ ...HEADER, kid }).encrypt(key)
  }

  /** @throws JOSEError unless the header is one of ours, without any further parameter. */
  function keyFor(header: Partial<CompactJWEHeaderParameters>): Promise<CryptoKey> {
    const { alg: _alg, enc: _enc, kid, ...others } = header
    const key = typeof kid === 'string' ? keys.get(kid) : undefined
    if (key !== undefined && Object.keys(others).length === 0) return key
    throw new errors.JWEInvalid('not a header of ours')
  }

  /** jose says the same of a wrong key and of a cipher that fails: what is sealed now must open. */
  async function assertWorking(): Promise<void> {
    const sealed = await encrypt(new Uint8Array(), current)
    await compactDecrypt(sealed, keyFor, OPENING)
  }

  async function decrypt(jwe: string): Promise<Uint8Array | undefined> {
    try {
      return (await compactDecrypt(jwe, keyFor, OPENING)).plaintext
    } catch (error) {
      if (error instanceof errors.JWEDecryptionFailed) await assertWorking()
      else if (!(error instanceof errors.JOSEError)) throw error
      return undefined
    }
  }

  return {
    async seal(result, belonging) {
      const plaintext = Buffer.concat([prefixOf(belonging), result])
      return Buffer.from(await encrypt(plaintext, current), 'latin1')
    },
    async open(sealed, belonging) {
      const jwe = bufferOf(sealed).toString('latin1')
      const plaintext = isCanonical(jwe) ? await decrypt(jwe) : undefined
      if (plaintext === undefined) return undefined
      const prefix = prefixOf(belonging)
      const isOfBelonging = prefix.equals(plaintext.subarray(0, prefix.byteLength))
      return isOfBelonging ? plaintext.subarray(prefix.byteLength) : undefined
    },
  }
}

/** Once for all results: an import for each would cost a fifth more. */
function importKey(bytes: Uint8Array): Promise<CryptoKey> {
  const copy = Uint8Array.from(bytes)
  const key = crypto.subtle.importKey('raw', copy, 'AES-GCM', false, ['encrypt', 'decrypt'])
  // Whoever needs the key is told.
  key.catch(() => {})
  return key
}

/** Tells where it ends, so that no result can be taken for a part of it. */
const prefixOf = ({ record, fingerprint }: Belonging): Buffer =>
  Buffer.from(textOfParts([record, fingerprint]))

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

/** jose also reads base64url with white space, padding and bits that do not count. */
const isCanonical = (jwe: string): boolean =>
  jwe.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
