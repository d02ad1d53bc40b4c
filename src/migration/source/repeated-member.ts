import { fieldOf } from '../record-validation/user-finding.js'

/** An object or a list whose end has not been read yet. */
interface Container {
  /** Names of the members so far; `undefined` for a list. */
  readonly names: Set<string> | undefined
  /** Name of the member that is being read. */
  name: string
  /** Index of the element that is being read. */
  index: number
}

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c]
const [OBJECT, OBJECT_END, LIST, LIST_END] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * Returns the path of the first member that its object has twice, or `undefined`. `JSON.parse` keeps only the last
 * one. Names are compared without their escapes: `"\u0061"` equals `"a"`. Expects valid JSON. Reads it once,
 * without recursion, because a line may hold as many levels as characters.
 */
export function repeatedMemberIn(json: string): string | undefined {
  const open: Container[] = []
  let inside: Container | undefined
  let isValue = false
  for (let at = 0; at < json.length; at += 1) {
    const character = json.charCodeAt(at)
    if (character === QUOTE) {
      const end = endOfString(json, at)
      if (inside?.names !== undefined && !isValue) {
        inside.name = nameIn(json.slice(at, end + 1))
        if (inside.names.has(inside.name)) return pathOf(open)
        inside.names.add(inside.name)
      }
      at = end
    } else if (character === OBJECT || character === LIST) {
      inside = { names: character === OBJECT ? new Set() : undefined, name: '', index: 0 }
      open.push(inside)
      isValue = false
    } else if (character === OBJECT_END || character === LIST_END) {
      open.pop()
      inside = open.at(-1)
    } else if (character === COLON) {
      isValue = true
    } else if (character === COMMA && inside !== undefined) {
      inside.index += 1
      isValue = false
    }
  }
  return undefined
}

/** Returns the position of the closing quote. */
function endOfString(json: string, start: number): number {
  let end = start + 1
  while (json.charCodeAt(end) !== QUOTE) end += json.charCodeAt(end) === BACKSLASH ? 2 : 1
  return end
}

const nameIn = (quoted: string): string =>
  quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1)

/** More levels make a path that nobody reads. */
const MAX_SHOWN_LEVELS = 20

function pathOf(open: readonly Container[]): string {
  let path = ''
  for (const { names, name, index } of open.slice(0, MAX_SHOWN_LEVELS)) {
    path = names === undefined ? `${path}[${index}]` : fieldOf(path, name)
  }
  return open.length > MAX_SHOWN_LEVELS ? `${path}…${fieldOf('', open.at(-1)?.name ?? '')}` : path
}
