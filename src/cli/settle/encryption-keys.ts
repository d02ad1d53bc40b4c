import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { RecordKeeper } from '../../idempotency/leased/record-keeper.js'
import {
  type EncryptedStoreOptions,
  encryptedStore,
} from '../../stores/encrypted/encrypted-store.js'
import type { Store } from '../../stores/memory-store.js'
import type { Arguments, OptionSpecs } from '../frame/arguments.js'
import { usageError } from '../frame/command-failure.js'
import { readJsonFile } from '../input/private-file.js'

export const KEYS_OPTIONS: OptionSpecs = {
  keys: {
    kind: 'text',
    value: 'FILE',
    help: 'the keys of an encrypted store: {"current", "keys": {id: base64url or null}}',
  },
}

const SHAPE =
  'the --keys file must contain { "current", "keys": { id: key } }: each key is 32 bytes in ' +
  'base64url, or null if it is lost, and current is the id of a key'
const KEY_BYTES = 32

const schema = z.strictObject({
  current: z.string(),
  keys: z.record(z.string(), z.union([z.string().transform(decodeKey), z.null()])),
  // Default: true, so that an unencrypted result counts as readable and is not overwritten.
  readUnencrypted: z.boolean().exactOptional(),
})

/** Accepts only canonical base64url. */
function decodeKey(text: string, context: z.RefinementCtx): Uint8Array {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.toString('base64url') !== text) context.addIssue({ code: 'custom' })
  return bytes
}

/**
 * Reads the keys of an encrypted store; `undefined` without `--keys`.
 *
 * @throws CommandFailure (2), without any part of a key.
 */
export async function readKeys(args: Arguments): Promise<EncryptedStoreOptions | undefined> {
  const path = args.text('keys')
  if (path === undefined) return undefined
  const parsed = schema.safeParse(await readJsonFile('--keys', path, { secrecy: 'secret' }))
  if (!parsed.success || parsed.data.keys[parsed.data.current] === null)
    throw usageError('file', SHAPE)
  // A random key stands in for a lost key: neither decrypts a result.
  const keys = Object.entries(parsed.data.keys).map(([id, key]) => [
    id,
    key ?? randomBytes(KEY_BYTES),
  ])
  return { readUnencrypted: true, ...parsed.data, keys: Object.fromEntries(keys) }
}

/**
 * Returns the record keeper of the store, with decryption if there are keys.
 *
 * @throws CommandFailure (2) if no encrypted store accepts the keys.
 */
export function keeperFor(store: Store, keys: EncryptedStoreOptions | undefined): RecordKeeper {
  // Without keys, `inspect` must not try to decrypt: it would report each encrypted result as unreadable.
  if (keys === undefined) return store
  try {
    return encryptedStore(store, keys)
  } catch (error) {
    if (error instanceof TypeError) throw usageError('file', SHAPE)
    throw error
  }
}
