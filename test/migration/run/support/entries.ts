import type {
  CallResult,
  Entry,
  EntryOf,
} from '../../../../src/migration/run/state/journal-entry.js'

/** A preflight that found nothing and started nothing, apart from `results`. */
export const preflight = (results: Partial<EntryOf<'preflight'>> = {}): Entry => ({
  type: 'preflight',
  started: false,
  invalid: '',
  hasAccount: '',
  foreignRows: [],
  taken: [],
  twice: [],
  ...results,
})

export const deletionSent = (...rows: string[]): Entry => ({
  type: 'sent',
  call: { kind: 'delete', rows },
})

export const settled = (result: CallResult): Entry => ({ type: 'settled', result })

export const staged = settled({ outcome: 'staged', by: 'reply' })
