/** Parses JSON; `undefined` if the text is not JSON. Discards the error of `JSON.parse`, because it quotes the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
