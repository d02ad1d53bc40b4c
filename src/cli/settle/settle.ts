import { z } from 'zod'
import type { RecordKeeper } from '../../idempotency/leased/record-keeper.js'
import {
  type EncryptedStoreOptions,
  encryptedStore,
} from '../../stores/encrypted/encrypted-store.js'
import type { Store } from '../../stores/memory-store.js'
import { NotConfirmed } from '../../stores/redis/connection/redis-connection.js'
import { redisStore } from '../../stores/redis/store/redis-store.js'
import type { Arguments } from '../frame/arguments.js'
import type { Command, CommandResult } from '../frame/command.js'
import { type Report, unreachableError, usageError } from '../frame/command-failure.js'
import { readJsonFile } from '../input/private-file.js'
import { REDIS_OPTIONS, withRedis } from '../redis/redis-client.js'
import {
  RECORD_OPTIONS,
  REQUEST_OPTIONS,
  readRecordName,
  readSettleRequest,
  type SettleRequest,
} from './settle-options.js'
import {
  formatState,
  type GivenKeys,
  keysError,
  recordLines,
  WAYS,
  whyNotSettleable,
} from './settle-view.js'

export const settle: Command = {
  name: 'settle',
  summary: 'Shows the record of an idempotency key, and settles a write whose outcome is unknown',
  usage: [
    'RECORD [--keys FILE]',
    'RECORD --fence N --free',
    'RECORD --fence N --done STATUS [--header LINE]... [--body FILE]',
    'RECORD --fence N --forget --reason TEXT',
    '[OPTIONS] -- RECORD  (if RECORD begins with -)',
    '--key-stdin --caller NAME --operation NAME --policy FILE [OPTIONS]',
    '--key-stdin --caller NAME --method M --mount PATH --route PATTERN [...]',
  ],
  maxValues: 1,
  options: {
    'Which record': RECORD_OPTIONS,
    'How it ended': REQUEST_OPTIONS,
    'Where it is': {
      '--keys FILE': 'the keys of an encrypted store: {"current", "keys": {id: base64url}}',
      ...REDIS_OPTIONS,
    },
  },
  exitCodes: { 1: 'the record does not exist or is in another state; nothing changed' },
  async run(context) {
    const { arguments: args } = context
    const request = await readSettleRequest(args)
    const keys = await readKeys(args)
    const record = await readRecordName(context)
    return await withRedis(context, async ({ client, prefix, timeoutMs }) => {
      const store = redisStore(client, { prefix, timeoutMs })
      try {
        const keeper = keeperFor(store, keys)
        return await settleOne({ store, keeper, keys, record }, request)
      } finally {
        store.close()
      }
    })
  },
}

const SHAPE =
  'the --keys file must contain { "current", "keys": { id: key } }: each key is 32 bytes in ' +
  'base64url, and current is the id of a key'

const keysSchema = z.strictObject({
  current: z.string(),
  keys: z.record(z.string(), z.string().transform(decodeKey)),
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
async function readKeys(args: Arguments): Promise<EncryptedStoreOptions | undefined> {
  const path = args.text('keys')
  if (path === undefined) return undefined
  const parsed = keysSchema.safeParse(await readJsonFile('--keys', path, { secrecy: 'secret' }))
  if (!parsed.success) throw usageError(SHAPE, 'file')
  // An unencrypted result counts as readable, so that it is not overwritten.
  return { readUnencrypted: true, ...parsed.data }
}

/**
 * Returns the record keeper of the store, with decryption if there are keys.
 *
 * @throws CommandFailure (2) if no encrypted store accepts the keys.
 */
function keeperFor(store: Store, keys: GivenKeys): RecordKeeper {
  // Without keys, `inspect` must not try to decrypt: it would report each encrypted result as unreadable.
  if (keys === undefined) return store
  try {
    return encryptedStore(store, keys)
  } catch (error) {
    if (error instanceof TypeError) throw usageError(SHAPE, 'file')
    throw error
  }
}

interface RecordContext {
  readonly store: Store
  /** The store, which decrypts if there are keys. */
  readonly keeper: RecordKeeper
  readonly keys: GivenKeys
  readonly record: string
}

/** @throws CommandFailure (3) if Redis does not answer. */
async function settleOne(
  work: RecordContext,
  request: SettleRequest | undefined,
): Promise<CommandResult> {
  const { keys, record } = work
  const view = await work.keeper.inspect(record).catch((error: unknown) => {
    throw unchangedError(error)
  })
  if (view === undefined) return notSettled({ record }, 'the record does not exist or has expired')
  if (request === undefined) {
    const shown = { record, view, keys, nowMs: Date.now() }
    return { exitCode: 0, lines: recordLines(shown), json: { record, view } }
  }
  if (request.fence !== view.fence) {
    const why = `the fence of the record is now ${view.fence}, and the record is ${formatState(view)}`
    return notSettled({ record, view }, `nothing changed: ${why}`)
  }
  const keysFault = request.type === 'finished' ? keysError(keys, view) : undefined
  if (keysFault !== undefined) throw keysFault
  const obstacle = whyNotSettleable(request.type, view)
  if (obstacle !== undefined) return notSettled({ record, view }, `nothing changed: ${obstacle}`)
  // The receivers of a store that does not encrypt may have no keys.
  const keeper = view.keyId === undefined ? work.store : work.keeper
  const isDone = await keeper.resolve(record, request.fence, request).catch((error: unknown) => {
    throw unconfirmedError(error, record)
  })
  if (!isDone) {
    return notSettled({ record }, 'nothing changed: the record was modified in the meantime')
  }
  const { type, reason } = request
  const line = WAYS[type].settled
  return {
    exitCode: 0,
    lines: [reason === undefined ? line : `${line} (${reason})`],
    json: { record, view, done: type, ...(reason !== undefined && { reason }) },
  }
}

const notSettled = (json: Report['json'], errorLine: string): CommandResult => ({
  exitCode: 1,
  lines: [],
  json,
  errorLine,
})

function unconfirmedError(error: unknown, record: string): unknown {
  if (!(error instanceof NotConfirmed && error.mayHaveRun)) return unchangedError(error)
  return unreachableError(
    'store_unavailable',
    'it is unknown whether the change was written; check: settle with the record alone shows it',
    { lines: [], json: { record } },
  )
}

/** Adds to an error that nothing changed, except to a `TypeError`, which is a defect of the command. */
function unchangedError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof TypeError) return error
  return unreachableError('store_unavailable', `${error.message}; nothing changed`)
}
