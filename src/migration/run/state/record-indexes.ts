import { MigrationError } from '../migration-error.js'

/** Writes record indexes in the given order, consecutive ones as a range: `0-1999,2003`. */
export function writeRecordIndexes(recordIndexes: Iterable<number>): string {
  const ranges: string[] = []
  let first = -1
  let last = -1
  for (const recordIndex of recordIndexes) {
    if (recordIndex !== last + 1 || first === -1) {
      if (first !== -1) ranges.push(writeRange(first, last))
      first = recordIndex
    }
    last = recordIndex
  }
  if (first !== -1) ranges.push(writeRange(first, last))
  return ranges.join(',')
}

const writeRange = (first: number, last: number): string =>
  first === last ? String(first) : `${first}-${last}`

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function* readRecordIndexes(text: string, identities: number): Generator<number> {
  if (text === '') return
  for (const range of text.split(',')) {
    const [first = -1, last = first] = range.split('-', 2).map(Number)
    if (Math.max(first, last) >= identities) {
      throw new MigrationError('bad_journal', 'the journal names a record that the source lacks')
    }
    for (let recordIndex = first; recordIndex <= last; recordIndex++) yield recordIndex
  }
}
