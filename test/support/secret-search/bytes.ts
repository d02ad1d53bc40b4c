// biome-ignore lint/suspicious/noControlCharactersInRegex: it names all of ASCII
const ASCII = /^[\x00-\x7f]*$/

/** Returns a string with one character for each byte, so that text and bytes are searched alike. */
export function bytesOf(value: string | Uint8Array): string {
  if (typeof value !== 'string') {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('latin1')
  }
  return ASCII.test(value) ? value : Buffer.from(value).toString('latin1')
}
