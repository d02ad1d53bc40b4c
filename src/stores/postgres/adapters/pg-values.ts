/** pg's interface for the functions that parse columns. */
export interface TypeParsers {
  getTypeParser(oid: number, format?: string): (text: string) => unknown
}

const BOOL = 16
const BYTEA = 17
const INT2 = 21
const INT4 = 23
const OID = 26

/** Parses columns by pg's defaults, whatever parsers the user has set; other types are text. */
export const OWN_PARSERS: TypeParsers = {
  getTypeParser: (oid) => (text) => readValue(oid, text),
}

export function readValue(oid: number, text: string): unknown {
  switch (oid) {
    case BOOL:
      return text === 't'
    case BYTEA:
      return Buffer.from(text.slice('\\x'.length), 'hex')
    case INT2:
    case INT4:
    case OID:
      return Number(text)
    default:
      return text
  }
}

/** Converts a value for binding: to a text, or to bytes in the binary format of `bytea`. */
export function boundValue(value: unknown): string | Buffer | null {
  if (value === null || value === undefined) return null
  if (typeof value === 'string') return value
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  }
  if (value instanceof Date) return value.toISOString()
  if (['number', 'bigint', 'boolean'].includes(typeof value)) return String(value)
  throw new TypeError('A value must be a string, number, bigint, boolean, Date, Uint8Array or null')
}
