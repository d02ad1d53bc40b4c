import type { RecordView } from '../../idempotency/leased/record-view.js'
import type { Arguments } from '../frame/arguments.js'
import { columns } from '../output/columns.js'
import { durationInWords, momentInWords } from '../output/format-time.js'
import type { KeyAccess } from './encryption-keys.js'
import {
  isLockedFor,
  isPlainFor,
  isSealedFor,
  lacksKeyOf,
  leftInWords,
  obstacleTo,
  stateInWords,
} from './settle-checks.js'

export interface Shown {
  readonly record: string
  readonly view: RecordView
  readonly access: KeyAccess
  readonly arguments: Arguments
  readonly nowMs: number
}

/** The record and the commands that may end it, without the content of its result. */
export const linesOn = (shown: Shown): string[] => [...columns(rowsOn(shown)), ...waysOut(shown)]

type Row = readonly [name: string, text: string]

function rowsOn(shown: Shown): Row[] {
  const { record, view, nowMs } = shown
  const { begunAt, leaseLeftMs, expiresInMs, resultBytes, keyId, fence } = view
  const begun = (at: number): string => `${momentInWords(at)}, ${agoInWords(at, nowMs)}`
  return [
    ['record', record],
    ['state', stateInWords(view)],
    ...row('begun', begunAt, begun),
    ...row('lease', leaseLeftMs, (ms) => `${leftInWords(ms)} left`),
    ['forgotten', expiresInMs === undefined ? 'never' : `in ${leftInWords(expiresInMs)}`],
    ...row('result', resultBytes, (bytes) => `${bytes} bytes`),
    ...row('key', keyId, (id) => keyInWords(id, shown)),
    ['fence', String(fence)],
  ]
}

/** Returns a row, or none if the value is missing. */
const row = <T>(name: string, value: T | undefined, inWords: (value: T) => string): Row[] =>
  value === undefined ? [] : [[name, inWords(value)]]

/** Redis's clock may be ahead of ours. */
const agoInWords = (seconds: number, nowMs: number): string =>
  `${durationInWords(Math.max(0, nowMs / 1000 - seconds))} ago`

function keyInWords(keyId: string, { view, access }: Shown): string {
  if (isSealedFor(access, view)) return `${keyId}; with --keys it is known whether it opens`
  return lacksKeyOf(access, view) ? `${keyId}, which the file of --keys lacks` : keyId
}

function waysOut(shown: Shown): string[] {
  const { view, access } = shown
  if (isLockedFor(access, view)) {
    return [
      '',
      `Only with the key ${view.keyId} is it known whether the result opens: add it to the file of --keys.`,
      `Where it is gone for good, say so there: "${view.keyId}": null`,
    ]
  }
  const ways: string[] = []
  if (obstacleTo('freed', view) === undefined) {
    ways.push('', 'Nothing has happened, and the next retry shall run:')
    ways.push(`  ${commandOn(shown, ['--free'])}`)
  }
  if (obstacleTo('finished', view) === undefined) {
    const isWithoutKeys = view.keyId !== undefined && access.type === 'none'
    const keys = isWithoutKeys ? ['--keys', 'FILE'] : []
    const answer = ['--done', 'STATUS', '--header', "'content-type: application/json'"]
    ways.push('', 'It has happened, and retries shall get this answer:')
    ways.push(`  ${commandOn(shown, [...answer, '--body', 'FILE', ...keys])}`)
  }
  return ways
}

const CARRIED_OVER = ['redis', 'prefix', 'timeout', 'keys']

/** A command line for the shell. */
function commandOn(shown: Shown, words: readonly string[]): string {
  const { record, view, access, arguments: given } = shown
  const carried = CARRIED_OVER.flatMap((name) => {
    const text = given.text(name)
    const isUnwanted = text === undefined || (name === 'keys' && isPlainFor(access, view))
    return isUnwanted ? [] : [`--${name}=${quotedForShell(text)}`]
  })
  const end = record.startsWith('-') ? ['--', record] : []
  const start = end.length === 0 ? [record] : []
  const fence = ['--fence', String(view.fence)]
  return ['service-auth settle', ...start, ...fence, ...words, ...carried, ...end].join(' ')
}

const quotedForShell = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
