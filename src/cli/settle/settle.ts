import type { RecordKeeper, RecordView } from '../../idempotency/leased/record-keeper.js'
import { NotConfirmed } from '../../stores/redis/connection/redis-call.js'
import { redisStore } from '../../stores/redis/store/redis-store.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { unreachableError } from '../frame/command-failure.js'
import { REDIS_OPTIONS, withRedis } from '../redis/redis-client.js'
import { KEYS_OPTIONS, keeperFor, readKeys } from './encryption-keys.js'
import { formatState, type GivenKeys, keysError, whyNotSettleable } from './settle-checks.js'
import { recordLines } from './settle-lines.js'
import {
  RECORD_OPTIONS,
  REQUEST_OPTIONS,
  readRecordName,
  readSettleRequest,
  type SettleRequest,
} from './settle-request.js'

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
  options: { ...REQUEST_OPTIONS, ...KEYS_OPTIONS, ...RECORD_OPTIONS, ...REDIS_OPTIONS },
  exit1Help: 'the record does not exist or is in another state; nothing changed',
  examples: [
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr',
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr --fence 1767225600000000 --free',
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr --fence 1767225600000000 --done 204',
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr --fence 1767225600000000 --forget --reason undone',
  ],
  async run(context) {
    const { arguments: args } = context
    const request = await readSettleRequest(args)
    const keys = await readKeys(args)
    const record = await readRecordName(context)
    return await withRedis(context, async ({ client, prefix, timeoutMs }) => {
      const store = redisStore(client, { prefix, timeoutMs })
      try {
        const keeper = keeperFor(store, keys)
        return await settleOne({ context, keeper, keys, record }, request)
      } finally {
        store.close()
      }
    })
  },
}

interface RecordContext {
  readonly context: Pick<CommandContext, 'arguments'>
  readonly keeper: RecordKeeper
  readonly keys: GivenKeys
  readonly record: string
}

async function settleOne(
  work: RecordContext,
  request: SettleRequest | undefined,
): Promise<CommandResult> {
  const { context, keys, record } = work
  const view = await readView(work)
  if (view === undefined) return notSettled({ record }, 'the record does not exist or has expired')
  if (request === undefined) {
    const shown = { record, view, keys, arguments: context.arguments, nowMs: Date.now() }
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
  if (!(await resolve(work, request))) return changedMeanwhile(work)
  const { reason } = request
  return {
    exitCode: 0,
    lines: [formatSettled(request, view)],
    json: { record, view, done: request.type, ...(reason !== undefined && { reason }) },
  }
}

function formatSettled({ type, reason }: SettleRequest, { state, keyId }: RecordView): string {
  const isReplaced = type === 'finished' && state === 'unreadable' && keyId !== undefined
  const instead = isReplaced ? ` instead of the one encrypted with ${keyId}` : ''
  const line = SETTLED_LINES[type] + instead
  return reason === undefined ? line : `${line} (${reason})`
}

/** The record in the output of `--json`; `view` is what was last read of it. */
interface JsonRecord {
  readonly record: string
  readonly view?: RecordView
}

const SETTLED_LINES = {
  freed: 'freed: the write did not happen, and the next retry runs',
  finished: 'finished: the write happened, and retries get this answer',
  forgotten: 'forgotten: the next request runs the handler again',
}

const notSettled = (found: JsonRecord, errorLine: string): CommandResult => ({
  exitCode: 1,
  lines: [],
  json: { ...found },
  errorLine,
})

async function changedMeanwhile(work: RecordContext): Promise<CommandResult> {
  const { record } = work
  const view = await readView(work)
  const now =
    view === undefined ? 'no longer exists' : `now is ${formatState(view)} (fence ${view.fence})`
  const found = view === undefined ? { record } : { record, view }
  return notSettled(found, `nothing changed: the record was modified in the meantime and ${now}`)
}

/** @throws CommandFailure (3) if Redis does not answer. */
async function readView({ keeper, record }: RecordContext): Promise<RecordView | undefined> {
  try {
    return await keeper.inspect(record)
  } catch (error) {
    throw unchangedError(error)
  }
}

/** @throws CommandFailure (3) if Redis does not answer. */
async function resolve(
  { keeper, record }: RecordContext,
  request: SettleRequest,
): Promise<boolean> {
  try {
    return await keeper.resolve(record, request.fence, request)
  } catch (error) {
    if (!(error instanceof NotConfirmed && error.mayHaveRun)) throw unchangedError(error)
    throw unreachableError(
      'store_unavailable',
      `it is unknown whether the change was written; check with: service-auth settle ${argumentOf(record)}`,
      { lines: [], json: { record } },
    )
  }
}

const argumentOf = (record: string): string => (record.startsWith('-') ? `-- ${record}` : record)

/** Adds to an error that nothing changed, except to a `TypeError`, which is a defect of the command. */
function unchangedError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof TypeError) return error
  return unreachableError('store_unavailable', `${error.message}; nothing changed`)
}
