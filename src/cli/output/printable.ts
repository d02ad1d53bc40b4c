/**
 * What a terminal would not show as it stands, or would obey: control characters and line breaks,
 * characters that are invisible or turn the direction of text, halves of characters, blanks other
 * than the space.
 */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu

const escapeUnits = (character: string): string => {
  let escaped = ''
  for (let index = 0; index < character.length; index++) {
    escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }
  return escaped
}

/** The text in one line, with `\uXXXX` for what is not safe to show. Harmless when applied twice. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escapeUnits)

/** One line of JSON that is as safe to show. */
export const printableJson = (value: object): string => printable(JSON.stringify(value))
