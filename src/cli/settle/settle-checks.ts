import type { RecordView, Resolution } from '../../idempotency/leased/record-view.js'
import { type CommandFailure, usageError } from '../frame/command-failure.js'
import { formatDuration } from '../output/format-time.js'
import type { KeyAccess } from './encryption-keys.js'

type ResolutionType = Resolution['type']

/** Formats milliseconds for people, rounded up to whole seconds first. */
export const formatTimeLeft = (ms: number): string => formatDuration(Math.ceil(ms / 1000))

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
      return leaseLeftMs > 0
        ? `not stored: its response is still being sent, and its lease has ${formatTimeLeft(leaseLeftMs)} left`
        : 'not stored: the write happened, but its answer was too large to store, or was streamed'
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

/** Returns a sentence that says why the record may not end this way; `undefined` if it may. */
export function whyNotSettleable(ending: ResolutionType, view: RecordView): string | undefined {
  const why = `the record is ${formatState(view)}`
  switch (view.state) {
    case 'abandoned':
      return ending === 'forgotten' ? `${why}; only --free and --done settle it` : undefined
    case 'finished':
      return ending === 'forgotten' ? undefined : why
    case 'not_stored':
      if (view.leaseLeftMs !== undefined) return why
      return ending === 'freed' ? `${why}; only --done and --forget settle it` : undefined
    case 'unreadable':
      if (view.recordVersion !== undefined) return why
      if (isDamaged(view)) return ending === 'freed' ? undefined : `${why}; only --free settles it`
      return ending === 'freed' ? `${why}; only --done and --forget settle it` : undefined
    default:
      return why
  }
}

/** Whether there is an encrypted result, but no keys to check whether it can be decrypted. */
export const needsKeys = (access: KeyAccess, { state, keyId }: RecordView): boolean =>
  access.type !== 'keys' && state === 'finished' && keyId !== undefined

/** Whether there are keys, but not the key of the record. */
export const isKeyMissing = (access: KeyAccess, { keyId }: RecordView): boolean =>
  access.type === 'keys' && keyId !== undefined && !Object.hasOwn(access.keys.keys, keyId)

/** Whether an unreadable result may be valid, because its key is not among the given ones. */
export const isUndecryptable = (access: KeyAccess, view: RecordView): boolean =>
  view.state === 'unreadable' && isKeyMissing(access, view)

/**
 * Whether there are keys, but the record's store does not encrypt. An answer that `settle` encrypts would
 * then be unreadable for the receivers, which may have no keys.
 */
export const hasNeedlessKeys = (access: KeyAccess, { keyId }: RecordView): boolean =>
  access.type === 'keys' && keyId === undefined && access.keys.readUnencrypted !== false

/** Returns why the keys that are given with `--done`, or the lack of keys, are an error. */
export function keysError(access: KeyAccess, view: RecordView): CommandFailure | undefined {
  const { keyId, state } = view
  if (hasNeedlessKeys(access, view) && whyNotSettleable('finished', view) === undefined) {
    return usageError(
      'usage',
      'the store of the record does not encrypt: omit --keys or, if receivers do not return ' +
        'unencrypted answers, set "readUnencrypted": false in its file',
    )
  }
  if (isUndecryptable(access, view)) {
    return usageError(
      'file',
      `the --keys file lacks the key ${keyId}, which is needed to check whether the result can be decrypted`,
    )
  }
  if (access.type === 'keys' || keyId === undefined) return undefined
  if (!needsKeys(access, view) && whyNotSettleable('finished', view) !== undefined) return undefined
  if (state === 'finished' || state === 'unreadable') {
    return usageError(
      'usage',
      `--done needs --keys to check whether the result, encrypted with the key ${keyId}, can be ` +
        'decrypted',
    )
  }
  if (access.type === 'unencrypted') return undefined
  return usageError(
    'usage',
    `--done needs --keys or --unencrypted: the store encrypts with the key ${keyId}`,
  )
}
