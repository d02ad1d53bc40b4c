import { columns } from './columns.js'

/** A finding of a command. The code is for programs, the message for people. */
export interface Finding {
  readonly code: string
  readonly message: string
}

/** Faults to fix now, and warnings of future problems. */
export interface Findings {
  readonly faults: readonly Finding[]
  readonly warnings: readonly Finding[]
}

export const findingLines = ({ faults, warnings }: Findings, indent = ''): string[] =>
  columns(
    [
      ...faults.map(({ code, message }) => ['fault', code, message]),
      ...warnings.map(({ code, message }) => ['warning', code, message]),
    ],
    indent,
  )
