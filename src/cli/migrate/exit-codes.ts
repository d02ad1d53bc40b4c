import type { MigrationReport, MigrationState } from '../../migration/run/report.js'
import type { ExitCode } from '../frame/command.js'
import { numberInWords } from './format-counts.js'

/** The exit code for each state of a run. */
export const EXIT_CODES: Readonly<Record<MigrationState, ExitCode>> = {
  complete: 0,
  preflight_failed: 1,
  core_fault: 3,
  to_correct: 4,
  to_reconcile: 5,
  stalled: 6,
  interrupted: 130,
}

/** The result of a step, for the shell and for people. */
export interface Verdict {
  readonly exitCode: ExitCode
  readonly words: string
}

export const verdictOn = ({ state }: MigrationReport): Verdict => ({
  exitCode: EXIT_CODES[state],
  words: state,
})

/** The result of `check`: the number of faults among the findings, and of invalid records. */
export function verdictOfCheck(report: MigrationReport): Verdict {
  const { state, findings, counts } = report
  if (state === 'core_fault') return verdictOn(report)
  const faults = findings.filter(({ severity }) => severity === 'fault').length
  const words = [numbered(faults, 'fault'), numbered(counts.invalid, 'invalid record')]
    .filter((part) => part !== '')
    .join(', ')
  if (words === '') return { exitCode: 0, words: 'no faults' }
  return { exitCode: faults > 0 ? EXIT_CODES.preflight_failed : EXIT_CODES.to_correct, words }
}

function numbered(number: number, noun: string): string {
  if (number === 0) return ''
  return `${numberInWords(number)} ${noun}${number === 1 ? '' : 's'}`
}
