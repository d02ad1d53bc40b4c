import { columns } from './columns.js'

/** Faults to fix now, warnings of future problems, and other facts. */
type Kind = 'faults' | 'warnings' | 'facts'

/** A finding of a command. The code is for programs, the message for people. */
export interface Found {
  readonly kind: Kind
  readonly code: string
  readonly message: string
}

const finder =
  (kind: Kind) =>
  (code: string, message: string): Found => ({ kind, code, message })

export const fault = finder('faults')
export const warning = finder('warnings')
export const fact = finder('facts')

/** The findings of a kind, as JSON. */
export const findingsOf = (found: readonly Found[], kind: Kind) =>
  found.filter((one) => one.kind === kind).map(({ code, message }) => ({ code, message }))

export const hasFault = (found: readonly Found[]): boolean =>
  found.some(({ kind }) => kind === 'faults')

/** The faults and the warnings, for people. */
export function findingLines(found: readonly Found[], indent = ''): string[] {
  const rows = (kind: Kind, word: string) =>
    findingsOf(found, kind).map(({ code, message }) => [word, code, message])
  return columns([...rows('faults', 'fault'), ...rows('warnings', 'warning')], indent)
}
