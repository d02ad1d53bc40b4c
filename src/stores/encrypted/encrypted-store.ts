import { isUint8Array } from 'node:util/types'
import { z } from 'zod'
import {
  flag,
  hasFunctions,
  isRecord,
  optionsObject,
  parseOptions,
  storeWith,
} from '../../base/options.js'
import type { CoupledStore } from '../../idempotency/coupled/coupled-store.js'
import type { IdempotencyStore } from '../../idempotency/leased/idempotency-store.js'
import type { RecordKeeper } from '../../idempotency/leased/record-view.js'
import { KEY_ID_FORM, sealedOwner } from '../../idempotency/leased/sealed-owner.js'
import { encryptedKeeper, isRecordKeeper } from './encrypted-record-keeper.js'
import { encryptedRun } from './encrypted-run.js'
import { type Belonging, createResultCipher, type ResultCipher } from './result-cipher.js'

/** Options of `encryptedStore`. */
export interface EncryptedStoreOptions {
  /** 1 to 16 ids (1 to 64 of `A-Za-z0-9._-`) to 32 bytes each, which are copied. */
  readonly keys: Readonly<Record<string, Uint8Array>>
  /** The id of the key that encrypts. All of them decrypt. */
  readonly current: string
  /** Whether a result that is not encrypted counts: for the roll-out alone. Default: `false`. */
  readonly readUnencrypted?: boolean | undefined
}

/** What `encodeResult` makes begins so; a compact JWE never does. */
const PLAIN_RESULT_START = '['.charCodeAt(0)

/** What is handed through, where a store has it. */
const HANDED_THROUGH = [
  'consume',
  'check',
  'close',
  'health',
  'consumeWithin',
  'transactionOf',
  'keepWrites',
  'effectId',
  'sweep',
] as const

/**
 * @inline
 * @useDeclaredType
 */
type HandedThrough = (typeof HANDED_THROUGH)[number]

/** What an encrypted store can do: all that is known of the store around which it is. */
export type EncryptedStore<Store extends IdempotencyStore | CoupledStore> = Pick<
  Store,
  keyof Store & HandedThrough
> &
  (Store extends IdempotencyStore ? IdempotencyStore : unknown) &
  (Store extends CoupledStore ? CoupledStore : unknown) &
  (Store extends RecordKeeper ? RecordKeeper : unknown)

const MAX_KEYS = 16
const KEY_BYTES = 32

const schema = optionsObject({
  keys: z.custom<object>(isRecord, { error: 'must be an object' }).transform(parseKeys),
  current: z.string({ error: 'must be a string' }),
  readUnencrypted: flag().default(false),
})

function parseKeys(input: object, context: z.RefinementCtx): Map<string, Uint8Array> {
  const entries = Object.entries(input)
  const fault = (message: string, path: PropertyKey[] = []): void =>
    context.addIssue({ code: 'custom', message, path })
  if (entries.length === 0 || entries.length > MAX_KEYS) {
    fault(`must have 1 to ${MAX_KEYS} ids`)
    return new Map()
  }
  entries.forEach(([id, bytes], index) => {
    // What has been taken for an id may be a key: only what is too short for one is shown.
    const path = [KEY_ID_FORM.test(id) && id.length < KEY_BYTES ? id : index]
    if (!KEY_ID_FORM.test(id)) fault('must have an id of 1 to 64 of A-Za-z0-9._-', path)
    const isKey = isUint8Array(bytes) && bytes.byteLength === KEY_BYTES
    if (!isKey) fault(`must be a Uint8Array of ${KEY_BYTES} bytes`, path)
  })
  return new Map(entries)
}

const LEASED = ['reserve', 'renew', 'settle'] as const
const leasedSchema = optionsObject({ store: storeWith<IdempotencyStore>(LEASED) })
const coupledSchema = optionsObject({
  store: storeWith<CoupledStore>(['run', 'consumeWithin', 'consume']),
})

/**
 * Encrypts the results that a store keeps, as compact JWE (RFC 7516) with `dir` and `A256GCM`. Each
 * opens for its record and fingerprint alone; one that does not open is `unreadable`. So is one that
 * was encrypted with a key that `keys` lacks, but `resolve` leaves that one as it is. Only the known
 * members of a store are handed through, so that nothing gets past the encryption.
 *
 * @throws TypeError when `store` is no store of idempotency keys, or an option is unknown, of the
 * wrong type or out of its range. It never holds a key.
 */
export function encryptedStore<Store extends IdempotencyStore | CoupledStore>(
  store: Store,
  options: EncryptedStoreOptions,
): EncryptedStore<Store> {
  const parsed = parseOptions('encryptedStore options', schema, options, ({ keys, current }) =>
    isRecord(keys) && typeof current === 'string' && !Object.keys(keys).includes(current)
      ? ['current must be one of the ids in keys']
      : [],
  )
  const { keys, current, readUnencrypted } = parsed
  const cipher = createResultCipher(keys, current)
  const open = async (kept: Uint8Array, belonging: Belonging): Promise<Uint8Array | undefined> =>
    readUnencrypted && kept[0] === PLAIN_RESULT_START ? kept : cipher.open(kept, belonging)

  const sealing: ResultCipher = { open, seal: cipher.seal }
  if (isCoupled(store)) {
    const run = encryptedRun(store, sealing)
    return { ...handedThrough(store), run } as unknown as EncryptedStore<Store>
  }
  const keeper = isRecordKeeper(store) ? encryptedKeeper(store, { ...sealing, keys }) : undefined
  const leased = encryptedLeases(store, current, sealing)
  return { ...handedThrough(store), ...keeper, ...leased } as unknown as EncryptedStore<Store>
}

/** @throws TypeError when it is neither a leased nor a coupled store, or both. */
function isCoupled(store: IdempotencyStore | CoupledStore): store is CoupledStore {
  const isLeased = LEASED.some((name) => hasFunctions(store, [name]))
  if (!hasFunctions(store, ['run'])) {
    parseOptions('encryptedStore', leasedSchema, { store })
    return false
  }
  if (isLeased) throw new TypeError('encryptedStore: store must be leased or coupled, not both')
  parseOptions('encryptedStore', coupledSchema, { store })
  return true
}

function encryptedLeases(
  store: IdempotencyStore,
  current: string,
  { open, seal }: ResultCipher,
): IdempotencyStore {
  return {
    async reserve(request) {
      const found = await store.reserve(ownedBy(current, request))
      // What is no reservation is for the middleware to tell: a rejection is taken for an outage.
      if (found?.outcome !== 'finished' || !isUint8Array(found.result)) return found
      const result = await open(found.result, belongingOf(request))
      return result === undefined ? { outcome: 'unreadable' } : { outcome: 'finished', result }
    },
    async renew(run) {
      return store.renew(ownedBy(current, run))
    },
    async settle(run, ending) {
      const owned = ownedBy(current, run)
      if (ending.type !== 'finished') return store.settle(owned, ending)
      const result = await seal(ending.result, belongingOf(run))
      return store.settle(owned, { type: 'finished', result })
    },
  }
}

const ownedBy = <Owned extends { readonly owner: string }>(keyId: string, run: Owned): Owned => ({
  ...run,
  owner: sealedOwner(keyId, run.owner),
})

const belongingOf = (run: { readonly key: string; readonly fingerprint: string }): Belonging => ({
  record: run.key,
  fingerprint: run.fingerprint,
})

function handedThrough(store: object): Record<string, (...given: unknown[]) => unknown> {
  const functions = store as Record<string, (...given: unknown[]) => unknown>
  return Object.fromEntries(
    HANDED_THROUGH.filter((name) => typeof functions[name] === 'function').map((name) => [
      name,
      (...given: unknown[]) => functions[name]?.(...given),
    ]),
  )
}
