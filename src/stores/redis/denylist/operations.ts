import { randomUUID } from 'node:crypto'
import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import { integerBetween, lazy, optionsObject, parseOptions } from '../../../base/options.js'
import {
  checkEntries,
  checkEntry,
  checkTarget,
  type DenylistEntry,
  type DenylistTarget,
} from '../../../verification/denylist/denylist-entry.js'
import { NotConfirmed } from '../connection/redis-connection.js'
import * as rows from './rows.js'
import * as scripts from './scripts.js'

/** The operations on a live denylist. */
export interface DenylistOperations {
  /**
   * Adds an entry. If the target is denied already, the later end and the later cut-off apply. The earlier
   * entry keeps its reason, author and time unless the new one extends it. Resolves with the version that
   * has the entry, and with the resulting entry.
   *
   * @throws TypeError if the entry is not valid, has ended, or would be the 10,001st; nothing was written.
   * @throws DenylistUnconfirmed, also if the target has a damaged row; in that case nothing was written.
   */
  deny(entry: DenylistEntry, options?: DenylistCallOptions): Promise<DenyResult>
  /**
   * Adds 1 to 1000 entries, all or none. Resolves with the resulting entries, in the order of `entries`.
   *
   * @throws TypeError as for one entry; the message holds the index.
   * @throws DenylistUnconfirmed
   */
  deny(entries: readonly DenylistEntry[], options?: DenylistCallOptions): Promise<DenyListResult>
  /**
   * Removes an entry from the list and from every receiver that still applies it. Resolves with the
   * version without the entry, and whether the list had it.
   *
   * @throws TypeError if the target is not valid, or if 10,000 others were allowed within the last 7
   * days; nothing was written.
   * @throws DenylistUnconfirmed
   */
  allow(target: DenylistTarget, options?: DenylistCallOptions): Promise<AllowResult>
  /** Returns the entries in force. @throws ServiceAuthError `unavailable`, which names a damaged row if there is one */
  entries(options?: DenylistCallOptions): Promise<readonly DenylistEntry[]>
  /**
   * Returns the receivers of the list. One that has crashed stays listed until it has been silent for its
   * `maxStaleSeconds`.
   *
   * @throws ServiceAuthError `unavailable`
   */
  receivers(options?: DenylistCallOptions): Promise<readonly DenylistReceiver[]>
  /** Returns the list's version and its server's time. @throws ServiceAuthError `unavailable` */
  version(options?: DenylistCallOptions): Promise<DenylistVersion>
}

/** Options of a denylist operation. */
export interface DenylistCallOptions {
  /** Milliseconds for the operation and its retries, 1 to 60,000. Default: 1000. */
  readonly timeoutMs?: number | undefined
}

/** The result of `deny` for one entry. */
export interface DeniedEntry {
  /** The entry in force, with its reason, author and time. */
  readonly entry: DenylistEntry
  /** Whether an earlier entry stays in force, because its end and its cut-off are as late or later. */
  readonly isEarlier: boolean
}

/** The result of `deny`. */
export interface DenyResult extends DeniedEntry {
  /** The version that has the entry. */
  readonly version: number
}

/** The result of `deny` for a list. */
export interface DenyListResult {
  /** The version that has all entries. */
  readonly version: number
  /** One for each entry of the call, in the same order. */
  readonly entries: readonly DeniedEntry[]
}

/** The result of `allow`. */
export interface AllowResult {
  /** The version without the entry. */
  readonly version: number
  /** Whether the list had the entry. */
  readonly wasListed: boolean
}

/** A receiver that reports which version it applies. */
export interface DenylistReceiver {
  /** The `name` option of the receiver. */
  readonly name: string
  /** The version that the receiver applies. */
  readonly version: number
  /** Seconds since its last report. */
  readonly seenSecondsAgo: number
}

/** The version of the list at a time of its server. */
export interface DenylistVersion {
  /** Grows with each change. */
  readonly version: number
  /** Seconds since the epoch, by the server's clock. */
  readonly serverSeconds: number
}

/** A write to a denylist that was not confirmed. Its `code` is `unavailable`. */
export class DenylistUnconfirmed extends ServiceAuthError {
  /** Whether it may have been written anyway. */
  readonly mayBeWritten: boolean

  /** Only `deny` and `allow` create these errors. */
  constructor(fault: string, mayBeWritten: boolean) {
    const outcome = mayBeWritten ? 'not known whether it was written' : 'nothing was written'
    super('unavailable', `the denylist is unreachable, ${outcome}: ${fault}`)
    this.mayBeWritten = mayBeWritten
  }
}

const MAX_ENTRIES = 10_000
/** Receivers read all tombstones with the entries, so an unlimited number would take them too long. */
const MAX_TOMBSTONES = 10_000
/** The maximum of `maxStaleSeconds`: no receiver applies an entry for longer without reading the list. */
const TOMBSTONE_SECONDS = 604_800
type UntimedCall = Omit<scripts.ListCall, 'timeoutMs'>

const schema = lazy(() => optionsObject({ timeoutMs: integerBetween(1, 60_000).default(1000) }))

export function createOperations(runOnList: scripts.RunOnList): DenylistOperations {
  const runScript = async (call: UntimedCall, options: unknown): Promise<unknown[]> => {
    const { timeoutMs } = parseOptions('denylist options', schema, options)
    return rows.rowsOf(await runOnList({ ...call, timeoutMs }))
  }

  async function write<T>(
    call: UntimedCall,
    options: unknown,
    parse: (answer: readonly unknown[]) => T,
  ): Promise<T> {
    try {
      const [outcome, ...answer] = await runScript(call, options)
      if (outcome === 'written') return parse(answer)
      throw refusal(outcome, answer)
    } catch (error) {
      if (error instanceof rows.MalformedReply) throw new DenylistUnconfirmed(error.message, true)
      throw error instanceof NotConfirmed
        ? new DenylistUnconfirmed(error.message, error.mayHaveRun)
        : error
    }
  }

  async function read<T>(
    script: UntimedCall['script'],
    options: unknown,
    parse: (reply: unknown[]) => T,
  ): Promise<T> {
    try {
      return parse(await runScript({ script }, options))
    } catch (error) {
      const isExpected = error instanceof rows.MalformedReply || error instanceof NotConfirmed
      if (!isExpected) throw error
      throw new ServiceAuthError('unavailable', `the denylist cannot be read: ${error.message}`)
    }
  }

  function deny(entry: DenylistEntry, options?: DenylistCallOptions): Promise<DenyResult>
  function deny(
    entries: readonly DenylistEntry[],
    options?: DenylistCallOptions,
  ): Promise<DenyListResult>
  async function deny(
    input: DenylistEntry | readonly DenylistEntry[],
    options: DenylistCallOptions = {},
  ): Promise<DenyResult | DenyListResult> {
    const isList = Array.isArray(input)
    const entries = isList ? checkEntries(input) : [checkEntry(input)]
    const texts = entries.flatMap(rows.entryTexts)
    const args = [randomUUID(), String(MAX_ENTRIES), ...texts]
    const call = { script: scripts.DENY, args }
    const result = await write(call, options, ([number, ...answer]) => ({
      version: rows.readNumber(number),
      entries: entries.map((entry, index) => rows.readDenied(entry, answer.slice(index * 3))),
    }))
    const [first] = result.entries
    return isList || first === undefined ? result : { version: result.version, ...first }
  }

  return {
    deny,
    async allow(input, options = {}) {
      const target = rows.targetText(checkTarget(input))
      const args = [randomUUID(), target, String(TOMBSTONE_SECONDS), String(MAX_TOMBSTONES)]
      return await write({ script: scripts.ALLOW, args }, options, ([number, listed]) => ({
        version: rows.readNumber(number),
        wasListed: listed === '1',
      }))
    },
    entries: (options = {}) => read(scripts.READ_WITH_REASONS, options, rows.readEntries),
    receivers: (options = {}) => read(scripts.RECEIVERS, options, (reply) => reply.map(receiverOf)),
    version: (options = {}) =>
      read(scripts.POLL, options, (reply) => {
        const { version, serverSeconds } = rows.readPoll(reply)
        return { version: version.number, serverSeconds }
      }),
  }
}

/** Returns the error for an outcome other than `written`. Nothing was written. */
function refusal(outcome: unknown, [index]: readonly unknown[]): Error {
  switch (outcome) {
    case 'damaged': {
      const fault = `its row of this target is damaged (index ${index}); allow the target, then deny it`
      return new DenylistUnconfirmed(fault, false)
    }
    case 'ended':
      return new TypeError(`denylist entry: until must be later than now (index ${index})`)
    case 'full':
      return new TypeError(`denylist entry: the list is full, it has ${MAX_ENTRIES} entries`)
    default:
      return new TypeError(
        `denylist target: ${MAX_TOMBSTONES} others were allowed within the last 7 days`,
      )
  }
}

function receiverOf(row: unknown): DenylistReceiver {
  const [name, version, silentMs] = rows.rowsOf(row)
  return {
    name: String(name),
    version: rows.readNumber(version),
    seenSecondsAgo: rows.readNumber(silentMs) / 1000,
  }
}
