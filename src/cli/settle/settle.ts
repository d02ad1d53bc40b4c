import type { RecordKeeper, RecordView } from '../../idempotency/leased/record-view.js'
import { NotConfirmed } from '../../stores/redis/connection/redis-deadline.js'
import { redisStore } from '../../stores/redis/store/redis-store.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { unreachableError } from '../frame/command-failure.js'
import { REDIS_OPTIONS, withRedis } from '../redis/redis-client.js'
import { KEYS_OPTIONS, type KeyAccess, keeperFor, readKeyAccess } from './encryption-keys.js'
import { RECORD_OPTIONS, readRecordName } from './record-name.js'
import { faultOfKeys, obstacleTo, stateInWords } from './settle-checks.js'
import { linesOn } from './settle-lines.js'
import { ORDER_OPTIONS, type Order, readOrder } from './settle-request.js'

export const settle: Command = {
  name: 'settle',
  summary: 'Shows the record of an idempotency key, and ends a write whose outcome nobody knows',
  usage: [
    'RECORD [--keys FILE]',
    'RECORD --fence N --free',
    'RECORD --fence N --done STATUS [--header LINE]... [--body FILE]',
    '[OPTIONS] -- RECORD  (for one that begins with -)',
    '--key-stdin --caller NAME --operation NAME --policy FILE [OPTIONS]',
    '--key-stdin --caller NAME --method M --mount PATH --route PATTERN [...]',
  ],
  maxValues: 1,
  options: { ...ORDER_OPTIONS, ...KEYS_OPTIONS, ...RECORD_OPTIONS, ...REDIS_OPTIONS },
  oneMeans: 'there is no such record, or it is in another state; nothing changed',
  examples: [
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr',
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr --fence 1767225600000000 --free',
    'service-auth settle hN3vY0b2m8QfZx1uT5sWk7Lr --fence 1767225600000000 --done 204',
  ],
  async run(context) {
    const { arguments: given } = context
    const order = await readOrder(given)
    const access = await readKeyAccess(given)
    const record = await readRecordName(context)
    return await withRedis(context, async ({ client, prefix, timeoutMs }) => {
      const store = redisStore(client, { prefix, timeoutMs })
      try {
        const keeper = keeperFor(store, access)
        return await settleOne({ context, keeper, access, record }, order)
      } finally {
        store.close()
      }
    })
  },
}

interface Work {
  readonly context: Pick<CommandContext, 'arguments'>
  readonly keeper: RecordKeeper
  readonly access: KeyAccess
  readonly record: string
}

async function settleOne(work: Work, order: Order | undefined): Promise<CommandResult> {
  const { context, access, record } = work
  const view = await look(work)
  if (view === undefined) return notDone({ record }, 'there is no such record, or not any more')
  if (order === undefined) {
    const shown = { record, view, access, arguments: context.arguments, nowMs: Date.now() }
    return { exitCode: 0, lines: linesOn(shown), json: { record, view } }
  }
  if (order.fence !== view.fence) {
    const why = `it has another fence now, ${view.fence}, and is ${stateInWords(view)}`
    return notDone({ record, view }, `nothing was changed: ${why}`)
  }
  const keysFault = order.type === 'finished' ? faultOfKeys(access, view) : undefined
  if (keysFault !== undefined) throw keysFault
  const obstacle = obstacleTo(order.type, view)
  if (obstacle !== undefined) return notDone({ record, view }, `nothing was changed: ${obstacle}`)
  if (!(await resolve(work, order))) return changedMeanwhile(work)
  return {
    exitCode: 0,
    lines: [doneInWords(work, order, view)],
    json: { record, view, done: order.type },
  }
}

function doneInWords({ access }: Work, { type }: Order, { state, keyId }: RecordView): string {
  if (type === 'finished' && access.type === 'unencrypted') return PLAIN_IN_WORDS
  const isReplaced = state === 'unreadable' && keyId !== undefined
  return DONE_IN_WORDS[type] + (isReplaced ? `, instead of the one encrypted by ${keyId}` : '')
}

/** The record in the output of `--json`; `view` is the record as it was read. */
interface Found {
  readonly record: string
  readonly view?: RecordView
}

const DONE_IN_WORDS = {
  freed: 'freed: nothing has happened, and the next retry runs',
  finished: 'finished: it has happened, and retries get this answer',
}

const PLAIN_IN_WORDS =
  'finished: it has happened, and receivers with readUnencrypted give retries this answer'

const notDone = (found: Found, complaint: string): CommandResult => ({
  exitCode: 1,
  lines: [],
  json: { ...found },
  complaint,
})

async function changedMeanwhile(work: Work): Promise<CommandResult> {
  const { record } = work
  const view = await look(work)
  const now = view === undefined ? 'is gone' : `is ${stateInWords(view)} (fence ${view.fence})`
  const found = view === undefined ? { record } : { record, view }
  return notDone(found, `nothing was changed: meanwhile it has changed, and ${now}`)
}

/** @throws CommandFailure (3) if Redis does not answer. */
async function look({ keeper, record }: Work): Promise<RecordView | undefined> {
  try {
    return await keeper.inspect(record)
  } catch (error) {
    throw unchanged(error)
  }
}

/** @throws CommandFailure (3) if Redis does not answer. */
async function resolve({ keeper, record }: Work, order: Order): Promise<boolean> {
  try {
    return await keeper.resolve(record, order.fence, order)
  } catch (error) {
    if (!(error instanceof NotConfirmed && error.mayHaveRun)) throw unchanged(error)
    throw unreachableError(
      'store_unavailable',
      `it is not known whether it was written; look again: service-auth settle ${argumentOf(record)}`,
      { lines: [], json: { record } },
    )
  }
}

const argumentOf = (record: string): string => (record.startsWith('-') ? `-- ${record}` : record)

/** Adds to an error that nothing was changed. A `TypeError` is a defect of the command. */
function unchanged(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof TypeError) return error
  return unreachableError('store_unavailable', `${error.message}; nothing was changed`)
}
