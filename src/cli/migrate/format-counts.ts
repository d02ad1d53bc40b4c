import type { MigrationCounts } from '../../migration/run/report.js'

/** In the order in which a person looks: what needs them first, what is done last. */
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

/** With a comma between thousands. */
export const numberInWords = (number: number): string => DIGITS.format(number)

/** The counts that are not 0. */
export const countsThatAre = (counts: MigrationCounts): [name: string, count: string][] =>
  ORDER.filter((name) => counts[name] > 0).map((name) => [
    name.replace('_', ' '),
    numberInWords(counts[name]),
  ])

export const countsInWords = (counts: MigrationCounts): string =>
  countsThatAre(counts)
    .map((words) => words.join(' '))
    .join(', ')
