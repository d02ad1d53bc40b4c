import type { DenylistReceiver } from '../../stores/redis/denylist/operations.js'
import type { DenylistEntry } from '../../verification/denylist/denylist-entry.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime, formatValue } from '../output/format-time.js'
import { REDIS_OPTIONS } from '../redis/redis-client.js'
import { withDenylist } from './change.js'

export const denylist: Command = {
  name: 'denylist',
  summary: 'Shows the entries of the denylist, and the receivers that apply them',
  usage: ['[--redis FILE] [--timeout TIME]'],
  options: { Options: REDIS_OPTIONS },
  exitCodes: { 1: 'nothing is denied' },
  run,
}

function run(context: CommandContext): Promise<CommandResult> {
  return withDenylist(context, async ({ denylist: list, callOptions }) => {
    // Reads the version first, so that a change during these reads makes no receiver look behind.
    const { version, serverSeconds } = await list.version(callOptions)
    const entries = [...(await list.entries(callOptions))].sort(byAge)
    const receivers = await list.receivers(callOptions)
    const lines = [...entryLines(entries, serverSeconds), '', ...receiverLines(receivers, version)]
    return { exitCode: entries.length > 0 ? 0 : 1, lines, json: { version, entries, receivers } }
  })
}

/** Sorts the oldest first, because Redis keeps no order. */
const byAge = (one: DenylistEntry, other: DenylistEntry): number =>
  one.at - other.at || (String(one.value) < String(other.value) ? -1 : 1)

function entryLines(entries: readonly DenylistEntry[], serverSeconds: number): string[] {
  if (entries.length === 0) return ['Nothing is denied.']
  const rows = entries.map(({ kind, value, issuer, until, by, reason, at }) => [
    kind,
    formatValue(value),
    issuer,
    until === null ? 'forever' : `in ${formatDuration(until - serverSeconds)}`,
    by,
    at === 0 ? '(lost)' : formatTime(at),
    reason,
  ])
  return columns([['denied', 'value', 'issuer', 'until', 'by', 'since', 'reason'], ...rows])
}

function receiverLines(receivers: readonly DenylistReceiver[], version: number): string[] {
  if (receivers.length === 0) return ['No receiver has reported yet.']
  const rows = receivers.map((receiver) => [
    receiver.name,
    receiver.version >= version ? 'up to date' : 'behind',
    `${formatDuration(receiver.seenSecondsAgo)} ago`,
  ])
  return columns([['receiver', 'list', 'seen'], ...rows])
}
