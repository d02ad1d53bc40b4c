import { columns } from './columns.js'

/** Something that a command has found. The code is for programs, the message for people. */
export interface Finding {
  readonly code: string
  readonly message: string
}

/** What has to be fixed, and what will hurt some day. */
export interface Findings {
  readonly faults: readonly Finding[]
  readonly warnings: readonly Finding[]
}

/** One line a finding. */
export const findingLines = ({ faults, warnings }: Findings, indent = ''): string[] =>
  columns(
    [
      ...faults.map(({ code, message }) => ['fault', code, message]),
      ...warnings.map(({ code, message }) => ['warning', code, message]),
    ],
    indent,
  )
