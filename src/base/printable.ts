/**
 * Characters that a terminal would not show as they are, or would obey: control characters and line
 * breaks, characters that are invisible or change the direction of text, lone surrogates, and
 * blanks other than the space.
 */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu

const escapeUnits = (character: string): string => {
  let escaped = ''
  for (let index = 0; index < character.length; index++) {
    escaped += `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }
  return escaped
}

/** Returns the text in one line, with `\uXXXX` for unsafe characters. Idempotent. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escapeUnits)

/** Returns one line of JSON that is equally safe to show. */
export const printableJson = (value: object): string => printable(JSON.stringify(value))
