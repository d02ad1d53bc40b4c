import type { MigrationState, RowLeft } from '../report.js'

/** Increases whenever an older version of the package could misread a newer journal. */
export const FORMAT = 1

/** Identifies a source: its path or name, and the digest of its content. */
export interface Origin {
  readonly name: string
  readonly file: boolean
  readonly digest: string
}

interface Begun {
  readonly type: 'begun'
  readonly format: typeof FORMAT
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly identities: number
  readonly source: Origin
  readonly core?: string | undefined
}

/** Valid records that are not staged, because an account (`taken`) or an earlier record (`twice`) has their login. */
interface LoginConflicts {
  readonly type: 'login_conflicts'
  readonly taken: readonly (readonly [ordinal: number, heldBy: string])[]
  readonly twice: readonly (readonly [ordinal: number, text: string])[]
}

/** Results of a preflight. `examined` comes first and discards those of an earlier preflight. */
type Examined =
  | { readonly type: 'examined' }
  | { readonly type: 'invalid'; readonly of: string }
  | { readonly type: 'found'; readonly of: string; readonly by: 'account' | 'row' }
  | LoginConflicts
  | { readonly type: 'foreign_rows'; readonly rows: readonly string[] }
  | { readonly type: 'started' }

/** `by`: `row` if a row exists that only this call can have staged; `accounts` if each user has an account or a row. */
type Batch =
  | { readonly type: 'batch_sent'; readonly batch: number; readonly of: string }
  | {
      readonly type: 'batch_staged'
      readonly batch: number
      readonly by: 'reply' | 'row' | 'accounts'
    }
  | {
      readonly type: 'batch_rejected'
      readonly batch: number
      readonly users: readonly {
        readonly of: number
        readonly line: number
        readonly errors: readonly string[]
      }[]
    }
  | { readonly type: 'batch_refused'; readonly batch: number; readonly code: string }
  | { readonly type: 'batch_absent'; readonly batch: number; readonly found: string }

interface FailedRow {
  readonly type: 'row'
  readonly row: string
  readonly of: number
  readonly line: number
  readonly externalUserId: string
  /** A `twin` belongs to an identity that already has its account or that has been decided on since. */
  readonly as: 'failed' | 'twin'
  readonly code?: string | undefined
  readonly text?: string | undefined
  readonly heldBy?: string | undefined
}

/** A row that still waited at the core when the run stalled. */
export interface StalledRow {
  readonly row: string
  readonly of: number
  readonly externalUserId: string
  readonly status: RowLeft['status']
  readonly heldBy?: string | undefined
}

/** An identity that no longer has a row and cannot get an account with its record. */
export interface Refusal {
  readonly of: number
  readonly line: number
  readonly code?: string | undefined
  readonly text: string
  readonly heldBy?: string | undefined
}

/**
 * `rows_stalled`: rows that the run no longer waits for. `delete_decided`: rows that are deleted next.
 * `identities_resolved`: the outcome of the identities of deleted rows.
 */
type Resolutions =
  | { readonly type: 'rows_stalled'; readonly rows: readonly StalledRow[] }
  | { readonly type: 'delete_decided'; readonly rows: (readonly [row: string, ordinal: number])[] }
  | {
      readonly type: 'identities_resolved'
      readonly found: string
      readonly toImport: string
      readonly refused: readonly Refusal[]
    }

type Rows =
  | { readonly type: 'waited' }
  | FailedRow
  | { readonly type: 'collected' }
  | { readonly type: 'rows_appeared' }
  | { readonly type: 'delete_sent'; readonly rows: readonly string[] }
  | { readonly type: 'deleted'; readonly rows: readonly string[] }
  | { readonly type: 'delete_refused' }
  | {
      readonly type: 'delete_unaccounted'
      readonly deleted: readonly string[]
      readonly open: readonly string[]
    }

type OfAccount = readonly [ordinal: number, coreUserId: string]
/** `line` is that of the correction. */
type Decided = readonly [ordinal: number, line: number, reason: string]

type LookUps =
  | {
      readonly type: 'looked_up'
      readonly same: OfAccount[]
      readonly differs: (readonly [...OfAccount, differences: readonly string[]])[]
      readonly shared: OfAccount[]
      readonly missing: (readonly [ordinal: number, heldBy: string | null])[]
    }
  | { readonly type: 'reconciled' }
  | { readonly type: 'reconcile_asked' }

type Corrections =
  | {
      readonly type: 'corrected'
      readonly source: Origin
      readonly replaced: (readonly [ordinal: number, line: number])[]
      readonly leftOut: Decided[]
      readonly accepted: Decided[]
    }
  | { readonly type: 'again'; readonly codes: readonly string[]; readonly of: string }

interface Ended {
  readonly type: 'ended'
  readonly state: MigrationState
  readonly findings: readonly {
    readonly [member: string]: unknown
    readonly code: string
    readonly severity: 'fault' | 'notice'
    readonly message: string
  }[]
  readonly fault?: string | undefined
  /** The `code` of the `CoreError`. */
  readonly faultCode?: string | undefined
}

/**
 * An entry of the journal. Ordinals count the records of the source from 0. A list of them is written
 * as text, by `writeOrdinals`.
 */
export type Entry = Begun | Examined | Batch | Rows | Resolutions | LookUps | Corrections | Ended
export type EntryOf<Type extends Entry['type']> = Extract<Entry, { type: Type }>

export const begunEntry = (begun: Omit<EntryOf<'begun'>, 'type' | 'format'>): Entry => ({
  type: 'begun',
  format: FORMAT,
  ...begun,
})

export const writeEntry = (written: Entry): string => JSON.stringify(written)
