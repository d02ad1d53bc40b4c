import type { DenylistEntry } from '../denylist/entry.js'
import type { DenylistReceiver } from '../stores/redis/denylist-operations.js'
import { columns } from './columns.js'
import type { Command, CommandContext, CommandResult } from './command.js'
import { answered, withDenylist } from './denylist-client.js'
import { REDIS_OPTIONS } from './redis-client.js'
import { durationInWords, momentInWords } from './time-in-words.js'

export const denylist: Command = {
  name: 'denylist',
  summary: 'Shows what is denied, by whom and until when, and which receivers apply it',
  usage: ['[--redis FILE] [--timeout TIME]'],
  options: REDIS_OPTIONS,
  oneMeans: 'nothing is denied',
  examples: ['service-auth denylist', 'service-auth denylist --json'],
  run,
}

function run(context: CommandContext): Promise<CommandResult> {
  return withDenylist(context, async ({ denylist: list, asking }) => {
    // The version first: a receiver that has it has at least what is shown.
    const { version, serverSeconds } = await answered(list.version(asking))
    const entries = [...(await answered(list.entries(asking)))].sort(byAge)
    const receivers = await answered(list.receivers(asking))
    const lines = [...entryLines(entries, serverSeconds), '', ...receiverLines(receivers, version)]
    return { exitCode: entries.length > 0 ? 0 : 1, lines, json: { version, entries, receivers } }
  })
}

/** The oldest first; Redis keeps no order. */
const byAge = (one: DenylistEntry, other: DenylistEntry): number =>
  one.at - other.at || (String(one.value) < String(other.value) ? -1 : 1)

function entryLines(entries: readonly DenylistEntry[], serverSeconds: number): string[] {
  if (entries.length === 0) return ['Nothing is denied.']
  const rows = entries.map(({ kind, value, issuer, until, by, reason, at }) => [
    kind,
    typeof value === 'number' ? momentInWords(value) : value,
    issuer,
    until === null ? 'for ever' : `${durationInWords(until - serverSeconds)} more`,
    by,
    at === 0 ? '(lost)' : momentInWords(at),
    reason,
  ])
  return columns([['denied', 'value', 'issuer', 'until', 'by', 'since', 'reason'], ...rows])
}

function receiverLines(receivers: readonly DenylistReceiver[], version: number): string[] {
  if (receivers.length === 0) return ['No receiver has reported itself.']
  const rows = receivers.map((receiver) => [
    receiver.name,
    receiver.version >= version ? 'applies it' : 'is behind',
    `${durationInWords(receiver.seenSecondsAgo)} ago`,
  ])
  return columns([['receiver', 'list', 'seen'], ...rows])
}
