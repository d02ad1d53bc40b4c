/** The content of the `Idempotency-Key` header: a key, nothing, or an invalid value. */
export type KeyHeader =
  | { readonly type: 'key'; readonly key: string }
  | { readonly type: 'missing' }
  | { readonly type: 'invalid' }

const MAX_KEY_LENGTH = 255
const VISIBLE_ASCII = /^[\x21-\x7e]+$/
/** A string of RFC 8941 (section 3.3.3), without parameters. */
const QUOTED = /^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

const INVALID: KeyHeader = { type: 'invalid' }

/** Reads the key from the values of the header as they came on the wire. */
export function readKey(values: readonly string[]): KeyHeader {
  const [value] = values
  if (value === undefined) return { type: 'missing' }
  if (values.length > 1) return INVALID
  const key = value.startsWith('"') ? unquote(value) : value
  if (key === undefined || key.length > MAX_KEY_LENGTH || !VISIBLE_ASCII.test(key)) return INVALID
  return { type: 'key', key }
}

const unquote = (value: string): string | undefined =>
  QUOTED.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1')
