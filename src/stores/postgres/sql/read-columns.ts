import type { Row } from '../runner.js'

/**
 * A column of ours. All are texts under names of one lower-case word, so that neither a type parser
 * nor a plug-in that renames columns gets at them.
 */
export function textIn(row: Row, column: string): string | undefined {
  const value = row[column]
  if (value === null) return undefined
  if (typeof value === 'string') return value
  throw new TypeError(`Postgres must answer with a text in the column ${column}`)
}

/** The one row of a statement that always has one. */
export function onlyRow(rows: readonly Row[] | undefined): Row {
  const [row] = rows ?? []
  if (row !== undefined && rows?.length === 1) return row
  throw new TypeError('Postgres must answer with one row')
}
