import type { RecordView, Resolution } from '../../idempotency/leased/record-keeper.js'
import type { EncryptedStoreOptions } from '../../stores/encrypted/encrypted-store.js'
import { type CommandFailure, usageError } from '../frame/command-failure.js'
import { formatDuration } from '../output/format-time.js'

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

/** Returns a sentence that says why the record may not end this way; `undefined` if it may. */
export function whyNotSettleable(ending: ResolutionType, view: RecordView): string | undefined {
  const why = `the record is ${formatState(view)}`
  switch (view.state) {
    case 'abandoned':
      return ending === 'forgotten' ? `${why}; only --free and --done settle it` : undefined
    case 'finished':
      return ending === 'forgotten' ? undefined : why
    case 'not_stored':
      return ending === 'freed' ? `${why}; only --done and --forget settle it` : undefined
    case 'unreadable':
      if (view.recordVersion !== undefined) return why
      if (isDamaged(view)) return ending === 'freed' ? undefined : `${why}; only --free settles it`
      return ending === 'freed' ? `${why}; only --done and --forget settle it` : undefined
    default:
      return why
  }
}

/** The keys of an encrypted store; `undefined` if none are given. */
export type GivenKeys = EncryptedStoreOptions | undefined

/** Whether there is an encrypted result, but no keys to check whether it can be decrypted. */
export const needsKeys = (keys: GivenKeys, { state, keyId }: RecordView): boolean =>
  keys === undefined && state === 'finished' && keyId !== undefined

/** Whether there are keys, but not the key of the record. */
export const isKeyMissing = (keys: GivenKeys, { keyId }: RecordView): boolean =>
  keys !== undefined && keyId !== undefined && !Object.hasOwn(keys.keys, keyId)

/** Whether an unreadable result may be valid, because its key is not among the given ones. */
export const isUndecryptable = (keys: GivenKeys, view: RecordView): boolean =>
  view.state === 'unreadable' && isKeyMissing(keys, view)

/**
 * Whether there are keys, but the record's store does not encrypt. An answer that `settle` encrypts would
 * then be unreadable for the receivers, which may have no keys.
 */
export const hasNeedlessKeys = (keys: GivenKeys, { keyId }: RecordView): boolean =>
  keys !== undefined && keyId === undefined && keys.readUnencrypted !== false

/** Returns why the keys that are given with `--done`, or the lack of keys, are an error. */
export function keysError(keys: GivenKeys, view: RecordView): CommandFailure | undefined {
  const { keyId } = view
  const isSettleable = whyNotSettleable('finished', view) === undefined
  if (isSettleable && hasNeedlessKeys(keys, view)) {
    return usageError(
      'usage',
      'the store of the record does not encrypt: omit --keys or, if receivers do not return ' +
        'unencrypted answers, set "readUnencrypted": false in its file',
    )
  }
  if (isUndecryptable(keys, view)) {
    return usageError(
      'file',
      `the --keys file lacks the key ${keyId}, which is needed to check whether the result can be decrypted`,
    )
  }
  if (keys !== undefined || keyId === undefined) return undefined
  if (!isSettleable && !needsKeys(keys, view)) return undefined
  return usageError('usage', `--done needs --keys: the store encrypts with the key ${keyId}`)
}
