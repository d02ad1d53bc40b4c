import { z } from 'zod'
import { MigrationError } from '../migration-error.js'

/** Increases whenever an older version of the package could misread a newer journal. */
export const FORMAT = 2

const count = z.int().min(0)
const text = z.string()
const ids = z.array(text)
/** Position of a record in the source, from 0. */
const recordIndex = count
/** The format of `writeRecordIndexes`. */
const recordIndexes = z.string().regex(/^(?:\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)?$/)

/** Identifies a source: its path or name, and the digest of its content. */
const origin = z.strictObject({ name: text, file: z.boolean(), digest: text })

const begun = z.strictObject({
  type: z.literal('begun'),
  format: z.literal(FORMAT),
  /** Milliseconds since the epoch. */
  at: z.number(),
  identities: count,
  source: origin,
  core: text.optional(),
})

/** Valid records that are not staged, because an account (`taken`) or an earlier record (`twice`) has their login. */
const loginConflicts = {
  taken: z.array(z.tuple([recordIndex, text])),
  twice: z.array(z.tuple([recordIndex, text])),
}

/** The results of a preflight, which replace those of an earlier one. */
const preflight = z.strictObject({
  type: z.literal('preflight'),
  /** The preflight has passed, so staging may begin. */
  started: z.boolean(),
  invalid: recordIndexes,
  hasAccount: recordIndexes,
  foreignRows: ids,
  ...loginConflicts,
})

/** A call that changes the core. It is journaled before it is sent. */
const sent = z.strictObject({
  type: z.literal('sent'),
  call: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('stage'), batch: count, records: recordIndexes }),
    z.strictObject({ kind: z.literal('delete'), rows: ids }),
  ]),
})

const stageResults = [
  /** `by`: without a reply, each user has a row or an account; `accounts` if none has a row. */
  z.strictObject({
    outcome: z.literal('staged'),
    by: z.enum(['reply', 'row', 'accounts']),
  }),
  z.strictObject({
    outcome: z.literal('rejected'),
    users: z.array(
      z.strictObject({
        record: recordIndex,
        line: count,
        errors: z.array(text),
        /** What the core lacks, if all errors name that: the record can be staged again with this code. */
        code: text.optional(),
      }),
    ),
  }),
  /** The call staged nobody. Some users have a row or an account from elsewhere. */
  z.strictObject({ outcome: z.literal('absent'), existing: recordIndexes }),
] as const

const deleteResults = [
  z.strictObject({ outcome: z.literal('deleted'), rows: ids }),
  z.strictObject({ outcome: z.literal('unaccounted'), deleted: ids, open: ids }),
] as const

/** The result of the last call that was sent. */
const settled = z.strictObject({
  type: z.literal('settled'),
  result: z.discriminatedUnion('outcome', [
    ...stageResults,
    ...deleteResults,
    z.strictObject({ outcome: z.literal('refused'), code: text }),
  ]),
})

/**
 * A row of this run.
 *
 * - `failed`: the core could not import it.
 * - `duplicate`: its identity already has its account, or has been decided on since.
 * - `stalled`: it still waited at the core when the run stalled.
 * - `unresolved`: it is deleted next, and its identity is looked up after the deletion.
 */
const row = z.strictObject({
  type: z.literal('row'),
  row: text,
  record: recordIndex,
  line: count,
  externalUserId: text,
  as: z.enum(['failed', 'duplicate', 'stalled', 'unresolved']),
  status: z.enum(['NEW', 'PROCESSING', 'FAILED']),
  code: text.optional(),
  text: text.optional(),
  heldBy: text.optional(),
})

/** What is left to do once nothing is left to send. */
const rest = z.strictObject({
  type: z.literal('rest'),
  phase: z.enum(['wait', 'collect', 'reconcile', 'done']),
  /** A person requested to look up each identity again. With the phase `wait`. */
  reverify: z.boolean().optional(),
})

/** An identity that no longer has a row and cannot get an account with its record. */
const refusal = z.strictObject({
  record: recordIndex,
  line: count,
  code: text.optional(),
  text,
  heldBy: text.optional(),
})

const withAccount = z.tuple([recordIndex, text])

/** Results of look-ups. The first four lists are results of the step `reconcile`. */
const lookedUp = z.strictObject({
  type: z.literal('looked_up'),
  same: z.array(withAccount),
  differs: z.array(z.tuple([recordIndex, text, ids])),
  shared: z.array(withAccount),
  missing: z.array(z.tuple([recordIndex, text.nullable()])),
  hasAccount: recordIndexes,
  hasRow: recordIndexes,
  /** Identities that are imported directly. */
  toImport: recordIndexes,
  refused: z.array(refusal),
})

/** A record that a person decided on, with the line of the correction. */
const decision = z.tuple([recordIndex, count, text])

const corrected = z.strictObject({
  type: z.literal('corrected'),
  source: origin,
  replaced: z.array(z.tuple([recordIndex, count])),
  leftOut: z.array(decision),
  accepted: z.array(decision),
})

/** Records that failed or were held back with one of these codes, and are staged again. */
const retry = z.strictObject({
  type: z.literal('retry'),
  codes: ids,
  records: recordIndexes,
  ...loginConflicts,
})

const ended = z.strictObject({
  type: z.literal('ended'),
  state: z.enum([
    'complete',
    'to_correct',
    'to_reconcile',
    'stalled',
    'interrupted',
    'preflight_failed',
    'core_fault',
  ]),
  findings: z.array(
    z.looseObject({ code: text, severity: z.enum(['fault', 'notice']), message: text }),
  ),
  fault: text.optional(),
  /** The `code` of the `CoreError`. */
  faultCode: text.optional(),
})

export const entrySchema = z.discriminatedUnion('type', [
  begun,
  preflight,
  sent,
  settled,
  row,
  rest,
  lookedUp,
  corrected,
  retry,
  ended,
])

/** An entry of the journal. A list of record indexes is written as text, by `writeRecordIndexes`. */
export type Entry = z.infer<typeof entrySchema>
export type EntryOf<Type extends Entry['type']> = Extract<Entry, { type: Type }>
export type Origin = z.infer<typeof origin>
export type SentCall = EntryOf<'sent'>['call']
export type CallResult = EntryOf<'settled'>['result']
export type ResultOf<Outcome extends CallResult['outcome']> = Extract<
  CallResult,
  { outcome: Outcome }
>
export type RefusedRecord = z.infer<typeof refusal>
export type RestPhase = EntryOf<'rest'>['phase']

export const begunEntry = (about: Omit<EntryOf<'begun'>, 'type' | 'format'>): Entry => ({
  type: 'begun',
  format: FORMAT,
  ...about,
})

/** An entry without the results that are not given. */
export const lookedUpEntry = (
  results: Partial<Omit<EntryOf<'looked_up'>, 'type'>>,
): EntryOf<'looked_up'> => ({
  type: 'looked_up',
  same: [],
  differs: [],
  shared: [],
  missing: [],
  hasAccount: '',
  hasRow: '',
  toImport: '',
  refused: [],
  ...results,
})

/** Writes record indexes in the given order, consecutive ones as a range: `0-1999,2003`. */
export function writeRecordIndexes(recordIndexes: Iterable<number>): string {
  const ranges: string[] = []
  let first = -1
  let last = -1
  for (const recordIndex of recordIndexes) {
    if (recordIndex !== last + 1 || first === -1) {
      if (first !== -1) ranges.push(writeRange(first, last))
      first = recordIndex
    }
    last = recordIndex
  }
  if (first !== -1) ranges.push(writeRange(first, last))
  return ranges.join(',')
}

const writeRange = (first: number, last: number): string =>
  first === last ? String(first) : `${first}-${last}`

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function* readRecordIndexes(text: string, identities: number): Generator<number> {
  if (text === '') return
  for (const range of text.split(',')) {
    const [first = -1, last = first] = range.split('-', 2).map(Number)
    if (Math.max(first, last) >= identities) {
      throw new MigrationError('bad_journal', 'the journal names a record that the source lacks')
    }
    for (let recordIndex = first; recordIndex <= last; recordIndex++) yield recordIndex
  }
}
