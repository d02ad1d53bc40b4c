import type { MigrationCounts } from '../../migration/run/report.js'

/** First the states that need a person, last those that are done. */
const ORDER: readonly (keyof MigrationCounts)[] = [
  'invalid',
  'failed',
  'missing',
  'differs',
  'shared',
  'pending',
  'staged',
  'left_out',
  'accepted',
  'reconciled',
]

const DIGITS = new Intl.NumberFormat('en-US')

/** Formats a number with commas between thousands. */
export const numberInWords = (number: number): string => DIGITS.format(number)

/** Returns the counts that are not 0. */
export const countsThatAre = (counts: MigrationCounts): [name: string, count: string][] =>
  ORDER.filter((name) => counts[name] > 0).map((name) => [
    name.replace('_', ' '),
    numberInWords(counts[name]),
  ])

export const countsInWords = (counts: MigrationCounts): string =>
  countsThatAre(counts)
    .map((words) => words.join(' '))
    .join(', ')
