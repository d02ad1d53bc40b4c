import { z } from 'zod'
import type { Journal } from '../../journal/journal.js'
import { MigrationError } from '../migration-error.js'
import { type Entry, FORMAT } from './journal-entry.js'

const count = z.int().min(0)
const text = z.string()
const ids = z.array(text)
/** The format of `writeOrdinals`. */
const ordinals = z.string().regex(/^(?:\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)?$/)

const origin = z.strictObject({ name: text, file: z.boolean(), digest: text })

const finding = z.looseObject({
  code: text,
  severity: z.enum(['fault', 'notice']),
  message: text,
})

const stalledRow = z.strictObject({
  row: text,
  of: count,
  externalUserId: text,
  status: z.enum(['NEW', 'PROCESSING', 'FAILED']),
  heldBy: text.optional(),
})

const refusal = z.strictObject({
  of: count,
  line: count,
  code: text.optional(),
  text,
  heldBy: text.optional(),
})

const entry: z.ZodType<Entry> = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('begun'),
    format: z.literal(FORMAT),
    at: z.number(),
    identities: count,
    source: origin,
    core: text.optional(),
  }),
  z.strictObject({ type: z.literal('examined') }),
  z.strictObject({ type: z.literal('invalid'), of: ordinals }),
  z.strictObject({ type: z.literal('found'), of: ordinals, by: z.enum(['account', 'row']) }),
  z.strictObject({
    type: z.literal('login_conflicts'),
    taken: z.array(z.tuple([count, text])),
    twice: z.array(z.tuple([count, text])),
  }),
  z.strictObject({ type: z.literal('foreign_rows'), rows: ids }),
  z.strictObject({ type: z.literal('started') }),

  z.strictObject({ type: z.literal('batch_sent'), batch: count, of: ordinals }),
  z.strictObject({
    type: z.literal('batch_staged'),
    batch: count,
    by: z.enum(['reply', 'row', 'accounts']),
  }),
  z.strictObject({
    type: z.literal('batch_rejected'),
    batch: count,
    users: z.array(z.strictObject({ of: count, line: count, errors: z.array(text) })),
  }),
  z.strictObject({ type: z.literal('batch_refused'), batch: count, code: text }),
  z.strictObject({ type: z.literal('batch_absent'), batch: count, found: ordinals }),

  z.strictObject({ type: z.literal('waited') }),
  z.strictObject({
    type: z.literal('row'),
    row: text,
    of: count,
    line: count,
    externalUserId: text,
    as: z.enum(['failed', 'twin']),
    code: text.optional(),
    text: text.optional(),
    heldBy: text.optional(),
  }),
  z.strictObject({ type: z.literal('collected') }),
  z.strictObject({ type: z.literal('rows_appeared') }),

  z.strictObject({ type: z.literal('rows_stalled'), rows: z.array(stalledRow) }),
  z.strictObject({ type: z.literal('delete_decided'), rows: z.array(z.tuple([text, count])) }),
  z.strictObject({
    type: z.literal('identities_resolved'),
    found: ordinals,
    toImport: ordinals,
    refused: z.array(refusal),
  }),

  z.strictObject({ type: z.literal('delete_sent'), rows: ids }),
  z.strictObject({ type: z.literal('deleted'), rows: ids }),
  z.strictObject({ type: z.literal('delete_refused') }),
  z.strictObject({ type: z.literal('delete_unaccounted'), deleted: ids, open: ids }),

  z.strictObject({
    type: z.literal('looked_up'),
    same: z.array(z.tuple([count, text])),
    differs: z.array(z.tuple([count, text, ids])),
    shared: z.array(z.tuple([count, text])),
    missing: z.array(z.tuple([count, text.nullable()])),
  }),
  z.strictObject({ type: z.literal('reconciled') }),
  z.strictObject({ type: z.literal('reconcile_asked') }),

  z.strictObject({
    type: z.literal('corrected'),
    source: origin,
    replaced: z.array(z.tuple([count, count])),
    leftOut: z.array(z.tuple([count, count, text])),
    accepted: z.array(z.tuple([count, count, text])),
  }),
  z.strictObject({ type: z.literal('again'), codes: ids, of: ordinals }),

  z.strictObject({
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
    findings: z.array(finding),
    fault: text.optional(),
    faultCode: text.optional(),
  }),
])

/** @throws MigrationError `bad_journal` if a line is not an entry of this version. */
export async function* readEntries(journal: Journal): AsyncGenerator<Entry> {
  let line = 0
  for await (const written of journal.read()) {
    line += 1
    yield readEntry(written, line)
  }
}

function readEntry(written: string, line: number): Entry {
  const value = parseJson(written)
  const parsed = entry.safeParse(value)
  if (parsed.success) return parsed.data
  throw new MigrationError('bad_journal', faultOf(value), line)
}

function faultOf(value: unknown): string {
  const format = Object(value).format
  return typeof format === 'number' && format > FORMAT
    ? 'the journal is of a newer version of this package'
    : 'no entry of a journal'
}

function parseJson(written: string): unknown {
  try {
    return JSON.parse(written)
  } catch {
    return undefined
  }
}
