import type { Ledger } from './ledger.js'
import type { IdentityReport } from './report.js'
import type { Entry } from './state/entry.js'
import { readOrdinals } from './state/ordinals.js'
import { sizeOf } from './state/run-state.js'

type Details = Partial<Omit<IdentityReport, 'externalUserId' | 'state'>>

/** What a report says of an identity beside its state. */
export interface IdentityDetails extends Details {
  /** By the core; else its record tells why it is invalid. */
  readonly wasRejected?: boolean
}

/** Details of the identities from `first` to below `end`, as the journal tells them. */
export async function readDetails(
  ledger: Ledger,
  first: number,
  end: number,
): Promise<ReadonlyMap<number, IdentityDetails>> {
  const details = new Map<number, IdentityDetails>()
  const set = (ordinal: number, its: IdentityDetails): void => {
    if (ordinal >= first && ordinal < end) details.set(ordinal, its)
  }
  const keptOf = (ordinal: number): Pick<Details, 'line' | 'corrections'> => {
    const { line, corrections } = details.get(ordinal) ?? {}
    return {
      ...(line === undefined ? {} : { line }),
      ...(corrections === undefined ? {} : { corrections }),
    }
  }
  for await (const entry of ledger.entries()) apply(entry)
  return details

  function apply(entry: Entry): void {
    switch (entry.type) {
      case 'batch_rejected':
        for (const { of, errors } of entry.users) {
          const findings = errors.map((message) => ({ field: '', code: 'rejected', message }))
          set(of, { ...keptOf(of), errors: findings, wasRejected: true })
        }
        return
      case 'row': {
        if (entry.as === 'twin') return
        const { row: rowId, of, code, text, heldBy } = entry
        set(of, {
          ...keptOf(of),
          rowId,
          ...(code === undefined ? {} : { code }),
          ...(text === undefined ? {} : { text }),
          ...(heldBy === undefined ? {} : { heldBy }),
        })
        return
      }
      case 'looked_up':
        for (const [of, coreUserId] of entry.same) set(of, { ...keptOf(of), coreUserId })
        for (const [of, coreUserId, differences] of entry.differs) {
          set(of, { ...keptOf(of), coreUserId, differences })
        }
        for (const [of, heldBy] of entry.missing) {
          set(of, { ...keptOf(of), ...(heldBy === null ? {} : { heldBy }) })
        }
        for (const [of, coreUserId] of entry.shared) {
          set(of, { ...keptOf(of), ...details.get(of), coreUserId })
        }
        return
      case 'corrected':
        for (const [of, line] of entry.replaced) set(of, { line, corrections: entry.source.name })
        for (const [of, , reason] of [...entry.leftOut, ...entry.accepted]) {
          set(of, { ...details.get(of), reason })
        }
        return
      case 'again':
        for (const of of readOrdinals(entry.of, sizeOf(ledger.state))) set(of, keptOf(of))
    }
  }
}
