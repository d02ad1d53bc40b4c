/** The class that the core names before an error of its database. */
export const STORAGE_EXCEPTION = 'io.supertokens.pluginInterface.exceptions.StorageQueryException'

/** The number of statements that the core sends in one batch. */
export const STATEMENTS_OF_BATCH = 100

/** Postgres stores no text with this character. */
const NUL = '\0'

export function isStorable(text: string | undefined): boolean {
  return text === undefined || !text.includes(NUL)
}

export interface BatchError {
  /** The place of the statement in its batch. */
  readonly entry: number
  readonly statement: string
  readonly error: string
}

/** The core returns the driver's message, with the statement and its values. */
export function batchText({ entry, statement, error }: BatchError): string {
  const end = 'Call getNextException to see other errors in the batch.'
  return `java.sql.BatchUpdateException: Batch entry ${entry} ${statement} was aborted: ERROR: ${error}  ${end}`
}

/** The values of a statement as the driver prints them, which cuts off a text after a NUL. */
export function valuesText(values: readonly (string | undefined)[]): string {
  return values
    .map((value) => (value === undefined ? '(NULL)' : `('${printed(value)}')`))
    .join(', ')
}

function printed(value: string): string {
  return isStorable(value) ? value : value.slice(0, value.indexOf(NUL) + 1)
}

/** `columns` and `values` are those of the key, separated by commas. */
export function duplicateKey(constraint: string, columns: string, values: string): string {
  const detail = `Detail: Key (${columns})=(${values}) already exists.`
  return `duplicate key value violates unique constraint "${constraint}"\n  ${detail}`
}

/** `parameter` is the position of the text among the parameters of its statement, starting at 1. */
export function nulText(parameter: number): string {
  return `invalid byte sequence for encoding "UTF8": 0x00\n  Where: unnamed portal parameter $${parameter}`
}
