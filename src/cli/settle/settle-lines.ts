import type { RecordView } from '../../idempotency/leased/record-keeper.js'
import type { Arguments } from '../frame/arguments.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'
import {
  formatState,
  formatTimeLeft,
  type GivenKeys,
  hasNeedlessKeys,
  isKeyMissing,
  isUndecryptable,
  needsKeys,
  whyNotSettleable,
} from './settle-checks.js'

interface ShownRecord {
  readonly record: string
  readonly view: RecordView
  readonly keys: GivenKeys
  readonly arguments: Arguments
  readonly nowMs: number
}

/** The record and the commands that may end it, without the content of its result. */
export const recordLines = (shown: ShownRecord): string[] => [
  ...columns(recordRows(shown)),
  ...nextCommands(shown),
]

type Row = readonly [name: string, text: string]

function recordRows(shown: ShownRecord): Row[] {
  const { record, view, nowMs } = shown
  const { begunAt, leaseLeftMs, expiresInMs, resultBytes, keyId, reason, fence } = view
  const formatBegun = (at: number): string => `${formatTime(at)}, ${formatAgo(at, nowMs)}`
  return [
    ['record', record],
    ['state', formatState(view)],
    ...row('started', begunAt, formatBegun),
    ...row('lease', leaseLeftMs, (ms) => `${formatTimeLeft(ms)} left`),
    ['expires', expiresInMs === undefined ? 'never' : `in ${formatTimeLeft(expiresInMs)}`],
    ...row('result', resultBytes, (bytes) => `${bytes} bytes`),
    ...row('key', keyId, (id) => formatKey(id, shown)),
    ...row('reason', reason, (text) => text),
    ['fence', String(fence)],
  ]
}

/** Returns a row, or none if the value is missing. */
const row = <T>(name: string, value: T | undefined, inWords: (value: T) => string): Row[] =>
  value === undefined ? [] : [[name, inWords(value)]]

/** Redis's clock may be ahead of this machine's. */
const formatAgo = (seconds: number, nowMs: number): string =>
  `${formatDuration(Math.max(0, nowMs / 1000 - seconds))} ago`

function formatKey(keyId: string, { view, keys }: ShownRecord): string {
  if (needsKeys(keys, view))
    return `${keyId}; use --keys to check whether the result can be decrypted`
  return isKeyMissing(keys, view) ? `${keyId}, which the --keys file lacks` : keyId
}

function nextCommands(shown: ShownRecord): string[] {
  const { view, keys } = shown
  if (isUndecryptable(keys, view)) {
    return [
      '',
      `The key ${view.keyId} is needed to check whether the result can be decrypted: add it to the --keys file.`,
      `If the key is lost, add "${view.keyId}": null instead.`,
    ]
  }
  const ways: string[] = []
  if (whyNotSettleable('freed', view) === undefined) {
    ways.push('', 'If the write did not happen, let the next retry run:')
    ways.push(`  ${commandOn(shown, ['--free'])}`)
  }
  if (whyNotSettleable('finished', view) === undefined) {
    const isWithoutKeys = view.keyId !== undefined && keys === undefined
    const keysOption = isWithoutKeys ? ['--keys', 'FILE'] : []
    const answer = ['--done', 'STATUS', '--header', "'content-type: application/json'"]
    ways.push('', 'If the write happened, give retries this answer:')
    ways.push(`  ${commandOn(shown, [...answer, '--body', 'FILE', ...keysOption])}`)
  }
  if (whyNotSettleable('forgotten', view) === undefined) {
    ways.push('', 'If it happened but must happen again, let the next request run:')
    ways.push(`  ${commandOn(shown, ['--forget', '--reason', 'TEXT'])}`)
  }
  return ways
}

const REPEATED_OPTIONS = ['redis', 'prefix', 'timeout', 'keys']

/** Returns a `settle` command for the shell, which repeats the options for Redis and keys. */
function commandOn(shown: ShownRecord, words: readonly string[]): string {
  const { record, view, keys, arguments: args } = shown
  const carried = REPEATED_OPTIONS.flatMap((name) => {
    const text = args.text(name)
    const isUnwanted = text === undefined || (name === 'keys' && hasNeedlessKeys(keys, view))
    return isUnwanted ? [] : [`--${name}=${quotedForShell(text)}`]
  })
  const end = record.startsWith('-') ? ['--', record] : []
  const start = end.length === 0 ? [record] : []
  const fence = ['--fence', String(view.fence)]
  return ['service-auth settle', ...start, ...fence, ...words, ...carried, ...end].join(' ')
}

const quotedForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
