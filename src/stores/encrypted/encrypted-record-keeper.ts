import { hasFunctions } from '../../base/options.js'
import { decodeResult } from '../../idempotency/buffered-response/stored-result.js'
import type { CanRead, RecordKeeper } from '../../idempotency/leased/record-keeper.js'
import { keyIdOfResult } from '../../idempotency/leased/record-keeper.js'
import type { ResultCipher } from './result-cipher.js'

export const isRecordKeeper = (store: object): store is RecordKeeper =>
  hasFunctions(store, ['inspect', 'resolve'])

interface CipherWithKeys extends ResultCipher {
  readonly keys: ReadonlyMap<string, unknown>
}

/** Gives the inner store a `canRead` that decrypts, because it cannot read encrypted results itself. */
export function encryptedKeeper(
  store: RecordKeeper,
  { open, seal, keys }: CipherWithKeys,
): RecordKeeper {
  const decryptFirst =
    (recordId: string, canRead: CanRead = isResult): CanRead =>
    (stored, fingerprint) => {
      const result = open(stored, { recordId, fingerprint })
      return result !== undefined && canRead(result, fingerprint)
    }

  /** Whether the key is missing here. Another instance that has it may be able to read the result. */
  const hasUnknownKey = (stored: Uint8Array): boolean => {
    const keyId = keyIdOfResult(stored)
    return keyId !== undefined && !keys.has(keyId)
  }

  return {
    async inspect(recordId, canRead = isResult) {
      const sizes: { resultBytes?: number } = {}
      const measureResult: CanRead = (result, fingerprint) => {
        sizes.resultBytes = result.byteLength
        return canRead(result, fingerprint)
      }
      const view = await store.inspect(recordId, decryptFirst(recordId, measureResult))
      return view && { ...view, ...sizes }
    },
    async resolve(recordId, fence, as) {
      if (as.type !== 'finished') return store.resolve(recordId, fence, as)
      // Without a fingerprint, the record cannot be finished: the inner store reports that.
      const { fingerprint = '' } = (await store.inspect(recordId)) ?? {}
      const result = seal(as.result, { recordId, fingerprint })
      const canReadDecrypted = decryptFirst(recordId, as.canRead)
      const canRead: CanRead = (stored, fingerprint) =>
        hasUnknownKey(stored) || canReadDecrypted(stored, fingerprint)
      return store.resolve(recordId, fence, { type: 'finished', result, canRead })
    },
  }
}

const isResult: CanRead = (result) => decodeResult(result) !== undefined
