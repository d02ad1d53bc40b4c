import { columns } from './columns.js'

/** A finding of a command. The code is for programs, the message for people. */
export interface Finding {
  readonly code: string
  readonly message: string
}

/** Faults to fix now, warnings of future problems, and other facts. */
export type Findings = Readonly<Record<'faults' | 'warnings' | 'facts', readonly Finding[]>>

export interface Found extends Finding {
  readonly kind: keyof Findings
}

const finder =
  (kind: Found['kind']) =>
  (code: string, message: string): Found => ({ kind, code, message })

export const fault = finder('faults')
export const warning = finder('warnings')
export const fact = finder('facts')

/** Sorts what was found by its kind. */
export function findingsOf(found: readonly Found[]): Findings {
  const of = (kind: Found['kind']): Finding[] =>
    found.filter((one) => one.kind === kind).map(({ code, message }) => ({ code, message }))
  return { faults: of('faults'), warnings: of('warnings'), facts: of('facts') }
}

export const findingLines = (
  { faults, warnings }: Pick<Findings, 'faults' | 'warnings'>,
  indent = '',
): string[] =>
  columns(
    [
      ...faults.map(({ code, message }) => ['fault', code, message]),
      ...warnings.map(({ code, message }) => ['warning', code, message]),
    ],
    indent,
  )
