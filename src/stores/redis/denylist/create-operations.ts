import { randomUUID } from 'node:crypto'
import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import { integerBetween, lazy, optionsObject, parseOptions } from '../../../base/options.js'
import {
  checkEntries,
  checkEntry,
  checkTarget,
} from '../../../verification/denylist/check-entry.js'
import type { DenylistEntry } from '../../../verification/denylist/denylist-entry.js'
import { NotConfirmed } from '../connection/redis-call.js'
import {
  type DenylistConnection,
  MIN_TRY_MS,
  retryScript,
  type ScriptCall,
} from './denylist-connection.js'
import {
  type DenyListResult,
  type DenylistCallOptions,
  type DenylistOperations,
  type DenylistReceiver,
  DenylistUnconfirmed,
  type DenyResult,
} from './operations.js'
import * as rows from './rows.js'
import * as scripts from './scripts.js'
import { ALLOW, DENY, INDEX, REMOVE_ROWS } from './write-scripts.js'

const MAX_ENTRIES = 10_000
/** Receivers read all tombstones with the entries, so an unlimited number would take them too long. */
const MAX_TOMBSTONES = 10_000
/** The maximum of `maxStaleSeconds`: no receiver applies an entry for longer without reading the list. */
const TOMBSTONE_SECONDS = 604_800
const schema = lazy(() => optionsObject({ timeoutMs: integerBetween(1, 60_000).default(1000) }))

export function createOperations(connection: DenylistConnection): DenylistOperations {
  const runScript = (call: ScriptCall, timeoutMs: number): Promise<unknown> =>
    retryScript(connection, call, timeoutMs)

  async function write<T>(
    call: ScriptCall,
    options: unknown,
    parse: (answer: readonly unknown[]) => T,
  ): Promise<T> {
    const deadline = performance.now() + timeoutOf(options)
    const leftMs = (): number => Math.max(MIN_TRY_MS, deadline - performance.now())
    try {
      for (;;) {
        const [outcome, ...answer] = rows.rowsOf(await runScript(call, leftMs()))
        if (outcome === 'written') return parse(answer)
        if (outcome !== 'unindexed') throw new TypeError(refusalText(outcome, answer))
        await checkAndIndex(leftMs)
        if (performance.now() >= deadline) throw new DenylistUnconfirmed(CHANGING, false)
      }
    } catch (error) {
      if (error instanceof rows.MalformedReply) throw new DenylistUnconfirmed(DAMAGED, true)
      throw error instanceof NotConfirmed
        ? new DenylistUnconfirmed(error.message, error.mayHaveRun)
        : error
    }
  }

  /**
   * Checks all rows and rebuilds the indexes, because another program has added or removed rows, or a
   * script failed midway. `deny` and `allow` read all rows only here.
   *
   * @throws DenylistUnconfirmed if a row is damaged or Redis does not reply; nothing was written.
   */
  async function checkAndIndex(leftMs: () => number): Promise<void> {
    try {
      // A write replaces the version, so a damaged version does not matter.
      const { entries, tombstones } = rows.readHashes(
        await runScript({ script: scripts.READ }, leftMs()),
      )
      const args = [TOMBSTONE_SECONDS, entries.size, tombstones.size].map(String)
      await runScript({ script: INDEX, args }, leftMs())
    } catch (error) {
      if (error instanceof rows.MalformedReply) throw new DenylistUnconfirmed(DAMAGED, false)
      throw error instanceof NotConfirmed ? new DenylistUnconfirmed(error.message, false) : error
    }
  }

  async function read<T>(
    script: ScriptCall['script'],
    options: unknown,
    parse: (reply: unknown) => T,
  ): Promise<T> {
    try {
      return parse(await runScript({ script }, timeoutOf(options)))
    } catch (error) {
      if (error instanceof rows.MalformedReply) throw unreadable(DAMAGED)
      throw error instanceof NotConfirmed ? unreadable(error.message) : error
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
    const result = await write({ script: DENY, args }, options, ([number, ...answer]) => ({
      version: rows.readNumber(number),
      entries: entries.map((entry, index) => rows.readDenied(entry, answer.slice(index * 3))),
    }))
    const [first] = result.entries
    return isList || first === undefined ? result : { version: result.version, ...first }
  }

  return {
    deny,
    async allow(input, options = {}) {
      const target = checkTarget(input)
      const args = [
        randomUUID(),
        rows.targetText(target),
        String(TOMBSTONE_SECONDS),
        String(MAX_TOMBSTONES),
      ]
      return await write({ script: ALLOW, args }, options, ([number, listed]) => ({
        version: rows.readNumber(number),
        wasListed: listed === '1',
      }))
    },
    entries: (options = {}) => read(scripts.READ_WITH_REASONS, options, rows.readEntries),
    damagedRows: (options = {}) => read(scripts.READ_ROWS, options, rows.readDamaged),
    removeRows(damaged, options = {}) {
      const args = [randomUUID(), ...damaged.map(({ digest }) => digest)]
      return write({ script: REMOVE_ROWS, args }, options, ([number, removed]) => ({
        version: rows.readNumber(number),
        removed: rows.readNumber(removed),
      }))
    },
    receivers: (options = {}) =>
      read(scripts.RECEIVERS, options, (reply) => rows.rowsOf(reply).map(receiverOf)),
    version: (options = {}) =>
      read(scripts.POLL, options, (reply) => {
        const { version, serverSeconds } = rows.readPoll(reply)
        return { version: version.number, serverSeconds }
      }),
  }
}

const timeoutOf = (options: unknown): number =>
  parseOptions('denylist options', schema, options).timeoutMs

const DAMAGED =
  'its keys in Redis have damaged rows, which no receiver can read; ' +
  '`service-auth denylist --repair` shows them'
const CHANGING = 'another program adds or removes rows of the list'

function refusalText(outcome: unknown, [index]: readonly unknown[]): string {
  if (outcome === 'ended') return `denylist entry: until must be later than now (index ${index})`
  if (outcome === 'full') return `denylist entry: the list is full, it has ${MAX_ENTRIES} entries`
  return `denylist target: ${MAX_TOMBSTONES} others were allowed within the last 7 days`
}

const unreadable = (fault: string): ServiceAuthError =>
  new ServiceAuthError('unavailable', `the denylist cannot be read: ${fault}`)

function receiverOf(row: unknown): DenylistReceiver {
  const [name, version, silentMs] = rows.rowsOf(row)
  return {
    name: String(name),
    version: rows.readNumber(version),
    seenSecondsAgo: rows.readNumber(silentMs) / 1000,
  }
}
