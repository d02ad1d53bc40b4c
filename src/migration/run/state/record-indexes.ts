import { MigrationError } from '../migration-error.js'

/** Writes ordinals in the given order, consecutive ones as a range: `0-1999,2003`. */
export function writeOrdinals(ordinals: Iterable<number>): string {
  const runs: string[] = []
  let first = -1
  let last = -1
  for (const ordinal of ordinals) {
    if (ordinal !== last + 1 || first === -1) {
      if (first !== -1) runs.push(writeRun(first, last))
      first = ordinal
    }
    last = ordinal
  }
  if (first !== -1) runs.push(writeRun(first, last))
  return runs.join(',')
}

const writeRun = (first: number, last: number): string =>
  first === last ? String(first) : `${first}-${last}`

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function* readOrdinals(text: string, identities: number): Generator<number> {
  if (text === '') return
  for (const run of text.split(',')) {
    const [first, last = first] = run.split('-', 2).map(Number)
    assertOrdinal(first, identities)
    assertOrdinal(last, identities)
    for (let ordinal = first; ordinal <= last; ordinal++) yield ordinal
  }
}

export const isOrdinal = (value: number | undefined, identities: number): value is number =>
  value !== undefined && Number.isInteger(value) && value >= 0 && value < identities

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function assertOrdinal(
  value: number | undefined,
  identities: number,
): asserts value is number {
  if (isOrdinal(value, identities)) return
  throw new MigrationError('bad_journal', 'the journal names a record that the source lacks')
}
