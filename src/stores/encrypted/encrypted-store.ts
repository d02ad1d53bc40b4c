import { isUint8Array } from 'node:util/types'
import { z } from 'zod'
import {
  flag,
  hasFunctions,
  isObject,
  lazy,
  optionsObject,
  parseOptions,
  storeWith,
} from '../../base/options.js'
import { decodeResult } from '../../idempotency/buffered-response/stored-result.js'
import type { IdempotencyStore, Reservation } from '../../idempotency/leased/idempotency-store.js'
import {
  type CanRead,
  KEY_ID_FORM,
  keyIdOfResult,
  type RecordKeeper,
  sealedOwner,
} from '../../idempotency/leased/record-keeper.js'
import type { CoupledStore, RunOutcome } from '../../idempotency/run.js'
import { type AssociatedData, createResultCipher, type ResultCipher } from './result-cipher.js'

/** Options of `encryptedStore`. */
export interface EncryptedStoreOptions {
  /** 1 to 16 keys of 32 bytes each, by id (1 to 64 of `A-Za-z0-9._-`). The bytes are copied. */
  readonly keys: Readonly<Record<string, Uint8Array>>
  /** The id of the key that encrypts. All keys decrypt. */
  readonly current: string
  /** Whether unencrypted results are accepted, for the roll-out only. Default: `false`. */
  readonly readUnencrypted?: boolean | undefined
}

/** The first byte of every result of `encodeResult`; a compact JWE never begins with it. */
const PLAIN_RESULT_START = '['.charCodeAt(0)

/** The functions that are passed through if the store has them. */
const PASSED_THROUGH = [
  'consume',
  'check',
  'close',
  'health',
  'transactionOf',
  'keepWrites',
  'effectId',
  'sweep',
] as const

/**
 * @inline
 * @useDeclaredType
 */
type PassedThrough = (typeof PASSED_THROUGH)[number]

/** The functions of an encrypted store: all known functions that the inner store has. */
export type EncryptedStore<Store extends IdempotencyStore | CoupledStore> = Pick<
  Store,
  keyof Store & PassedThrough
> &
  (Store extends IdempotencyStore ? IdempotencyStore : unknown) &
  (Store extends CoupledStore ? CoupledStore : unknown) &
  (Store extends RecordKeeper ? RecordKeeper : unknown)

const MAX_KEYS = 16
const KEY_BYTES = 32
const NO_KEY = `must be a Uint8Array of ${KEY_BYTES} bytes, such as Buffer.from(text, 'base64url')`

const schema = lazy(() =>
  optionsObject({
    keys: z.custom<object>(isObject, { error: 'must be an object' }).transform(parseKeys),
    current: z.string({ error: 'must be a string' }),
    readUnencrypted: flag().default(false),
  }),
)

function parseKeys(input: object, context: z.RefinementCtx): Map<string, Uint8Array> {
  const entries = Object.entries(input)
  const addIssue = (message: string, path: PropertyKey[] = []): void =>
    context.addIssue({ code: 'custom', message, path })
  if (entries.length === 0 || entries.length > MAX_KEYS) {
    addIssue(`must have 1 to ${MAX_KEYS} ids`)
    return new Map()
  }
  entries.forEach(([id, bytes], index) => {
    // A key may have been passed as an id: the message shows only ids that are too short for a key.
    const path = [KEY_ID_FORM.test(id) && id.length < KEY_BYTES ? id : index]
    if (!KEY_ID_FORM.test(id)) addIssue('must have an id of 1 to 64 of A-Za-z0-9._-', path)
    const isKey = isUint8Array(bytes) && bytes.byteLength === KEY_BYTES
    if (!isKey) addIssue(NO_KEY, path)
  })
  return new Map(entries)
}

/**
 * Encrypts the results in a store, as compact JWE (RFC 7516) with `dir` and `A256GCM`. A result can be
 * decrypted only for its record and fingerprint; any other is `unreadable`. So is a result that was
 * encrypted with a key that is not in `keys`, but `resolve` does not change such a result. Only known
 * functions of the store are passed through, so that nothing bypasses the encryption.
 *
 * @throws TypeError if `store` is not a store of idempotency keys, or an option is unknown, of the
 * wrong type or out of its range. It never holds a key.
 *
 * @example
 * ```ts
 * import { randomBytes } from 'node:crypto'
 * import { encryptedStore, memoryStore, requireIdempotencyKey } from 'express-service-auth'
 *
 * const keys = { 'key-1': randomBytes(32) }
 * const store = encryptedStore(memoryStore(), { keys, current: 'key-1' })
 * const once = requireIdempotencyKey({ store })
 * ```
 */
export function encryptedStore<Store extends IdempotencyStore | CoupledStore>(
  store: Store,
  options: EncryptedStoreOptions,
): EncryptedStore<Store> {
  const parsed = parseOptions('encryptedStore options', schema, options, ({ keys, current }) =>
    isObject(keys) && typeof current === 'string' && !Object.keys(keys).includes(current)
      ? ['current must be one of the ids in keys']
      : [],
  )
  const { keys, current, readUnencrypted } = parsed
  const cipher = createResultCipher(keys, current)
  const sealing: ResultCipher = {
    seal: cipher.seal,
    open: (stored, associatedData) =>
      readUnencrypted && stored[0] === PLAIN_RESULT_START
        ? stored
        : cipher.open(stored, associatedData),
  }
  if (isCoupled(store)) {
    const run = encryptedRun(store, sealing)
    return { ...passThrough(store), run } as unknown as EncryptedStore<Store>
  }
  const keeper = isRecordKeeper(store) ? encryptedKeeper(store, sealing, keys) : undefined
  const leased = encryptedLeases(store, current, sealing)
  return { ...passThrough(store), ...keeper, ...leased } as unknown as EncryptedStore<Store>
}

/** @throws TypeError if it is neither a leased nor a coupled store. */
function isCoupled(store: IdempotencyStore | CoupledStore): store is CoupledStore {
  const hasRun = hasFunctions(store, ['run'])
  const names = hasRun ? ['run', 'consume'] : ['reserve', 'renew', 'settle']
  parseOptions(
    'encryptedStore',
    () => optionsObject({ store: storeWith<Record<string, unknown>>(names) }),
    { store },
  )
  return hasRun
}

/** Returns a `run` that stores results only encrypted. */
function encryptedRun(store: CoupledStore, { seal, open }: ResultCipher): CoupledStore['run'] {
  return async (request, work) => {
    const outcome = await store.run(request, async (run) => {
      const ending = await work(run)
      if (ending.type !== 'answered' || ending.result === undefined) return ending
      return { ...ending, result: seal(ending.result, request) }
    })
    return outcome.outcome === 'overtaken'
      ? { ...outcome, by: decrypted(outcome.by, request, open) }
      : decrypted(outcome, request, open)
  }
}

/** What a store has found, with its result decrypted. */
function decrypted<Found extends Reservation | RunOutcome>(
  found: Found,
  record: AssociatedData,
  open: ResultCipher['open'],
): Found | { readonly outcome: 'unreadable' } {
  if (found.outcome !== 'finished') return found
  const result = open(found.result, record)
  return result === undefined ? { outcome: 'unreadable' } : { ...found, result }
}

function encryptedLeases(
  store: IdempotencyStore,
  current: string,
  { open, seal }: ResultCipher,
): IdempotencyStore {
  return {
    async reserve(request) {
      return decrypted(await store.reserve(ownedBy(current, request)), request, open)
    },
    async renew(run) {
      return store.renew(ownedBy(current, run))
    },
    async settle(run, ending) {
      const stored =
        ending.type === 'finished' ? { ...ending, result: seal(ending.result, run) } : ending
      return store.settle(ownedBy(current, run), stored)
    },
  }
}

const isRecordKeeper = (store: object): store is RecordKeeper =>
  hasFunctions(store, ['inspect', 'resolve'])

/** Gives the inner store a `canRead` that decrypts, because it cannot read encrypted results itself. */
function encryptedKeeper(
  store: RecordKeeper,
  { open, seal }: ResultCipher,
  keys: ReadonlyMap<string, unknown>,
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

const ownedBy = <Owned extends { readonly owner: string }>(keyId: string, run: Owned): Owned => ({
  ...run,
  owner: sealedOwner(keyId, run.owner),
})

function passThrough(store: object): Record<string, (...args: unknown[]) => unknown> {
  const functions = store as Record<string, (...args: unknown[]) => unknown>
  return Object.fromEntries(
    PASSED_THROUGH.filter((name) => typeof functions[name] === 'function').map((name) => [
      name,
      (...args: unknown[]) => functions[name]?.(...args),
    ]),
  )
}
