import type { DenylistReceiver } from '../../stores/redis/denylist/operations.js'
import type { DenylistEntry } from '../../verification/denylist/denylist-entry.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime, formatValue } from '../output/format-time.js'
import { REDIS_OPTIONS } from '../redis/redis-client.js'
import { withDenylist } from './denylist-access.js'

export const denylist: Command = {
  name: 'denylist',
  summary: 'Shows the entries of the denylist, and the receivers that apply them',
  usage: ['[--redis FILE] [--timeout TIME]', '--repair [--yes]'],
  options: {
    repair: { kind: 'flag', help: 'show the rows in Redis that no receiver can read' },
    yes: { kind: 'flag', help: 'with --repair: remove them' },
    ...REDIS_OPTIONS,
  },
  exit1Help: 'nothing is denied; with --repair: damaged rows were not removed',
  examples: [
    'service-auth denylist',
    'service-auth denylist --json',
    'service-auth denylist --repair',
  ],
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  if (context.arguments.flag('repair')) return await repair(context)
  if (context.arguments.flag('yes')) throw usageError('usage', '--yes requires --repair')
  return await show(context)
}

function repair(context: CommandContext): Promise<CommandResult> {
  const isConfirmed = context.arguments.flag('yes')
  return withDenylist(context, async ({ denylist: list, callOptions }) => {
    const rows = await list.damagedRows(callOptions)
    const damaged = rows.map(({ key, name, text }) => ({ key, name, text }))
    if (rows.length === 0) {
      return { exitCode: 0, lines: ['No row is damaged.'], json: { damaged, removed: 0 } }
    }
    const table = damaged.map(({ key, name, text }) => [key, name, text])
    const lines = [...columns([['key', 'name', 'row'], ...table]), '']
    if (!isConfirmed) {
      const advice = 'Each row may be a lost entry: run --repair --yes, then deny its target again.'
      return { exitCode: 1, lines: [...lines, advice], json: { damaged, removed: 0 } }
    }
    const { removed, version } = await list.removeRows(rows, callOptions)
    const line = `Removed ${removed} damaged ${removed === 1 ? 'row' : 'rows'}.`
    const exitCode = removed === rows.length ? 0 : 1
    return { exitCode, lines: [...lines, line], json: { damaged, removed, version } }
  })
}

function show(context: CommandContext): Promise<CommandResult> {
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
