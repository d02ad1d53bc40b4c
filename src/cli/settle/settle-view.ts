import type { RecordView, Resolution } from '../../idempotency/leased/record-keeper.js'
import type { EncryptedStoreOptions } from '../../stores/encrypted/encrypted-store.js'
import { type CommandFailure, usageError } from '../frame/command-failure.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'

type Ending = Resolution['type']

/** The keys of an encrypted store; `undefined` if none are given. */
export type GivenKeys = EncryptedStoreOptions | undefined

/** Formats milliseconds for people, rounded up to whole seconds first. */
const formatTimeLeft = (ms: number): string => formatDuration(Math.ceil(ms / 1000))

/** Describes a record, as the end of a sentence that begins with "the record is". */
export function formatState(view: RecordView): string {
  const { state, leaseLeftMs = 0, recordVersion } = view
  switch (state) {
    case 'running':
      return `running, and its lease has ${formatTimeLeft(leaseLeftMs)} left`
    case 'abandoned':
      return 'abandoned: its run is gone, and it is unknown whether the write happened'
    case 'finished':
      return 'finished: its answer is stored'
    case 'not_stored':
      return 'not stored: the write happened, but its answer was too large to store, or was streamed'
    case 'freed':
      return 'freed: the next request runs'
    case 'unreadable':
      if (recordVersion !== undefined) {
        return `in the format of version ${recordVersion}: use the command of that version`
      }
      return isDamaged(view)
        ? 'unreadable: the whole record is damaged'
        : 'unreadable: the write happened, but its result cannot be read'
  }
}

/** Whether nothing is known about the record except that it exists. */
const isDamaged = ({ fence }: RecordView): boolean => fence === 0

/** A way to end a record. */
interface Way {
  /** When an operator may choose it. */
  readonly intro: string
  /** The words of the command after `--fence N`; the first is its option. */
  readonly words: string
  /** What it has done. */
  readonly settled: string
}

export const WAYS: Readonly<Record<Ending, Way>> = {
  freed: {
    intro: 'If the write did not happen, let the next retry run:',
    words: '--free',
    settled: 'freed: the write did not happen, and the next retry runs',
  },
  finished: {
    intro: 'If the write happened, give retries this answer:',
    words: "--done STATUS --header 'content-type: application/json' --body FILE",
    settled: 'finished: the write happened, and retries get this answer',
  },
  forgotten: {
    intro: 'If it happened but must happen again, let the next request run:',
    words: '--forget --reason TEXT',
    settled: 'forgotten: the next request runs the handler again',
  },
}

/** How an operator may end a record in each state. */
const ENDINGS: Readonly<Record<RecordView['state'], readonly Ending[]>> = {
  running: [],
  abandoned: ['freed', 'finished'],
  finished: ['forgotten'],
  not_stored: ['finished', 'forgotten'],
  freed: [],
  unreadable: ['finished', 'forgotten'],
}

function endingsOf(view: RecordView): readonly Ending[] {
  if (view.recordVersion !== undefined) return []
  return isDamaged(view) ? ['freed'] : ENDINGS[view.state]
}

/** Returns a sentence that says why the record may not end this way; `undefined` if it may. */
export function whyNotSettleable(ending: Ending, view: RecordView): string | undefined {
  const endings = endingsOf(view)
  if (endings.includes(ending)) return undefined
  const why = `the record is ${formatState(view)}`
  if (endings.length === 0) return why
  const options = endings.map((each) => WAYS[each].words.split(' ', 1)).join(' and ')
  return `${why}; only ${options} ${endings.length === 1 ? 'settles' : 'settle'} it`
}

/** Whether there are keys, but not the key of the record. */
const isKeyMissing = (keys: GivenKeys, { keyId }: RecordView): boolean =>
  keys !== undefined && keyId !== undefined && !Object.hasOwn(keys.keys, keyId)

/** Whether an unreadable result may be valid, because its key is not among the given ones. */
const isUndecryptable = (keys: GivenKeys, view: RecordView): boolean =>
  view.state === 'unreadable' && isKeyMissing(keys, view)

/** Returns why the keys that are given with `--done`, or the lack of keys, are an error. */
export function keysError(keys: GivenKeys, view: RecordView): CommandFailure | undefined {
  const { keyId } = view
  if (isUndecryptable(keys, view)) {
    return usageError(
      `the --keys file lacks the key ${keyId}, which is needed to check whether the result can be decrypted`,
      'file',
    )
  }
  if (keys !== undefined || keyId === undefined) return undefined
  return usageError(`--done needs --keys: the store encrypts with the key ${keyId}`)
}

interface ShownRecord {
  readonly record: string
  readonly view: RecordView
  readonly keys: GivenKeys
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
  if (keys === undefined && view.state === 'finished')
    return `${keyId}; use --keys to check whether the result can be decrypted`
  return isKeyMissing(keys, view) ? `${keyId}, which the --keys file lacks` : keyId
}

function nextCommands(shown: ShownRecord): string[] {
  const { view, keys } = shown
  if (isUndecryptable(keys, view)) {
    return [
      '',
      `The key ${view.keyId} is needed to check whether the result can be decrypted: add it to the --keys file.`,
      'If the key is lost, add 32 random bytes as that key instead.',
    ]
  }
  return endingsOf(view).flatMap((ending) => {
    const { intro, words } = WAYS[ending]
    const needsKeysOption = ending === 'finished' && view.keyId !== undefined
    const more = needsKeysOption ? ' --keys FILE' : ''
    return ['', intro, `  ${commandOn(shown, words + more)}`]
  })
}

/** Returns a `settle` command. A record that looks like an option goes last, after `--`. */
const commandOn = ({ record, view }: ShownRecord, words: string): string =>
  record.startsWith('-')
    ? `service-auth settle --fence ${view.fence} ${words} -- ${record}`
    : `service-auth settle ${record} --fence ${view.fence} ${words}`
