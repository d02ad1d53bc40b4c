import type { Row } from '../runner.js'

/**
 * Reads a column of this package's statements. All columns are texts with names of one lower-case
 * word, so that a type parser does not change them, and a plug-in that renames columns only their first letter.
 */
export function textIn(row: Row, column: string): string | undefined {
  const value = column in row ? row[column] : row[column[0]?.toUpperCase() + column.slice(1)]
  if (value === null) return undefined
  if (typeof value === 'string') return value
  throw new TypeError(`Postgres must answer with a text in the column ${column}`)
}

/** Returns the row of a statement that always returns exactly one. */
export function onlyRow(rows: readonly Row[] | undefined): Row {
  const [row] = rows ?? []
  if (row !== undefined && rows?.length === 1) return row
  throw new TypeError('Postgres must answer with one row')
}
