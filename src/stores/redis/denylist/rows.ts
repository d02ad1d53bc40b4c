import { parseJson } from '../../../base/json.js'
import { isShortText } from '../../../base/options.js'
import { printable } from '../../../base/printable.js'
import type {
  DeniedKind,
  DenylistEntry,
  DenylistTarget,
} from '../../../verification/denylist/denylist-entry.js'
import { NO_VERSION } from '../../../verification/denylist/list-state.js'
import type {
  ListVersion,
  LocalEntry,
  ReadList,
} from '../../../verification/denylist/merge-entries.js'

// The arguments and replies of the scripts in scripts.ts. The comment at its top has the layout of each row.

/** The error for a reply that cannot be read, for example because another program has written to the keys. */
export class MalformedReply extends Error {
  override readonly name = 'MalformedReply'
}

const KINDS: readonly unknown[] = ['caller', 'key', 'token'] satisfies DeniedKind[]

/** Returns the name of a target in Redis, which is unique for each target. */
export const targetText = (target: DenylistTarget | DenylistEntry): string =>
  target.kind === 'issued-before'
    ? JSON.stringify([target.issuer, target.kind])
    : JSON.stringify([target.issuer, target.kind, String(target.value)])

/** Rounds up to milliseconds, as Redis stores them, so that the entry lasts longer and denies more. */
const secondsText = (seconds: number): string => String(Math.ceil(seconds * 1000) / 1000)

const limitTexts = ({ kind, value, until }: DenylistEntry): [string, string] => [
  until === null ? '-' : secondsText(until),
  kind === 'issued-before' ? secondsText(Number(value)) : '-',
]

/** Returns the arguments of `DENY` for an entry. */
export const entryTexts = (entry: DenylistEntry): string[] => [
  targetText(entry),
  ...limitTexts(entry),
  reasonText(entry),
]

/** Returns the resulting entry from the reply to `DENY`. @throws MalformedReply */
export function readDenied(
  input: DenylistEntry,
  [ends, cutoff, reason]: readonly unknown[],
): { readonly entry: DenylistEntry; readonly isEarlier: boolean } {
  const { endsAt, issuedBefore } = readLimits(ends, cutoff)
  const until = endsAt === Number.POSITIVE_INFINITY ? null : endsAt
  const value = input.kind === 'issued-before' ? issuedBefore : input.value
  // An earlier entry that stays in force keeps its reason.
  const isEarlier = reason !== reasonText(input)
  return { entry: { ...input, ...readReason(String(reason)), value, until }, isEarlier }
}

/** @throws MalformedReply */
export function readPoll(reply: unknown): { version: ListVersion; serverSeconds: number } {
  const [version, seconds, microseconds] = rowsOf(reply)
  return {
    version: readVersion(version),
    serverSeconds: readNumber(seconds) + readNumber(microseconds) / 1_000_000,
  }
}

/** @throws MalformedReply */
export function readList(reply: unknown): ReadList {
  const [_version, _seconds, _microseconds, entries, tombstones] = rowsOf(reply)
  return {
    ...readPoll(reply),
    entries: readHash('entries', entries, readEntry),
    tombstones: readHash('marks', tombstones, readTombstone),
  }
}

/** Reads the rows of a hash. @throws MalformedReply that names the first damaged row */
function readHash<T>(
  hash: string,
  reply: unknown,
  readRow: (target: string, row: string) => T,
): Map<string, T> {
  const read = new Map<string, T>()
  for (const [target, row] of pairsOf(reply)) {
    try {
      read.set(target, readRow(target, row))
    } catch {
      const shown = printable(target).slice(0, MAX_SHOWN_LENGTH)
      throw new MalformedReply(`no receiver can read the field ${shown} of its hash ${hash}`)
    }
  }
  return read
}

/** Long enough for the issuer and the value of a damaged row. */
const MAX_SHOWN_LENGTH = 600

/** Returns the number of the version with which the target was allowed. @throws MalformedReply */
function readTombstone(target: string, row: string): number {
  readTarget(target)
  return readNumber(matchRow(row, /^(\d{1,16})\|\d+\|[01]\|\S{1,64}$/)[0])
}

/** Returns the entries in force with their reasons. @throws MalformedReply */
export function readEntries(reply: unknown): DenylistEntry[] {
  const { entries, serverSeconds } = readList(reply)
  const [, , , , , reasonRows] = rowsOf(reply)
  const reasons = new Map(pairsOf(reasonRows))
  return [...entries]
    .filter(([, { endsAt }]) => endsAt > serverSeconds)
    .map(([target, entry]) => recordOf(entry, reasons.get(target)))
}

function recordOf(entry: LocalEntry, text: string | undefined): DenylistEntry {
  const { issuer, kind, value, issuedBefore, endsAt } = entry
  return {
    issuer,
    kind,
    value: kind === 'issued-before' ? issuedBefore : value,
    ...readReason(text),
    until: endsAt === Number.POSITIVE_INFINITY ? null : endsAt,
  }
}

type EntryReason = Pick<DenylistEntry, 'reason' | 'by' | 'at'>

/** The reason of an entry whose reason cannot be read: the entry still applies. */
const REASON_LOST: EntryReason = { reason: '(lost)', by: '(lost)', at: 0 }

const reasonText = ({ reason, by, at }: EntryReason): string => JSON.stringify({ reason, by, at })

function readReason(text: string | undefined): EntryReason {
  const { reason, by, at } = Object(parseJson(text ?? 'null'))
  return isShortText(reason) && isShortText(by) && Number.isFinite(at)
    ? { reason, by, at: Number(at) }
    : REASON_LOST
}

/** Parses the end and the cut-off of an entry. @throws MalformedReply */
const readLimits = (
  ends: unknown,
  cutoff: unknown,
): Pick<LocalEntry, 'endsAt' | 'issuedBefore'> => ({
  endsAt: ends === '-' ? Number.POSITIVE_INFINITY : readNumber(ends),
  issuedBefore: cutoff === '-' ? 0 : readNumber(cutoff),
})

const ENTRY_ROW = /^(\d{1,16})\|(-|\d{1,11}(?:\.\d{1,3})?)\|(-|\d{1,11}(?:\.\d{1,3})?)$/

function readEntry(name: string, row: string): LocalEntry {
  const target = readTarget(name)
  const [number, ends, cutoff] = matchRow(row, ENTRY_ROW)
  if ((cutoff === '-') === (target.kind === 'issued-before')) throw new MalformedReply('a cut-off')
  return { ...target, number: readNumber(number), ...readLimits(ends, cutoff) }
}

function readTarget(text: string): Pick<LocalEntry, 'issuer' | 'kind' | 'value'> {
  const parts = Object.values(Object(parseJson(text)))
  const [issuer, kind, value] = parts
  const isCutOff = kind === 'issued-before' && parts.length === 2
  const isNamed = KINDS.includes(kind) && isShortText(value) && parts.length === 3
  if (!isShortText(issuer) || !(isCutOff || isNamed) || JSON.stringify(parts) !== text) {
    throw new MalformedReply('a target')
  }
  return { issuer, kind: kind as DeniedKind, value: isCutOff ? '' : (value as string) }
}

function readVersion(text: unknown): ListVersion {
  if (text === null) return NO_VERSION
  const [, number, nonce = ''] = /^(\d{1,16}) (\S{1,64})$/.exec(String(text)) ?? []
  if (number === undefined) throw new MalformedReply('no receiver can read its key version')
  return { number: readNumber(number), nonce }
}

/** @throws MalformedReply */
export function readNumber(text: unknown): number {
  const number = typeof text === 'string' ? Number(text) : Number.NaN
  if (!Number.isFinite(number) || number > Number.MAX_SAFE_INTEGER)
    throw new MalformedReply('a number')
  return number
}

function matchRow(text: unknown, form: RegExp): string[] {
  const match = typeof text === 'string' ? form.exec(text) : null
  if (match === null) throw new MalformedReply('a row')
  return match.slice(1)
}

/** @throws MalformedReply */
export function rowsOf(reply: unknown): unknown[] {
  if (!Array.isArray(reply)) throw new MalformedReply('a reply')
  return reply
}

function pairsOf(reply: unknown): [string, string][] {
  const flat = rowsOf(reply)
  const pairs: [string, string][] = []
  for (let at = 0; at < flat.length; at += 2) pairs.push([String(flat[at]), String(flat[at + 1])])
  return pairs
}
