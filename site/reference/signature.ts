/** A line of code of this length can be read on a small screen, if one turns it. */
const LONGEST_LINE = 76

const OPENING = '(<[{'
const CLOSING = ')>]}'

/** A signature with a line for each parameter, where one line would be too long. */
export function brokenSignature(line: string): string {
  const [start, end] = parametersOf(line) ?? []
  if (line.length <= LONGEST_LINE || start === undefined || end === undefined) return line
  const parameters = partsOf(line.slice(start, end)).map((part) => `  ${part.trim()},\n`)
  return `${line.slice(0, start)}\n${parameters.join('')}${line.slice(end)}`
}

/** Where the parameters begin and end: between the first brackets that stand in no others. */
function parametersOf(line: string): readonly [number, number] | undefined {
  let start: number | undefined
  let end: number | undefined
  eachWithDepth(line, (character, depth, at) => {
    if (start === undefined && character === '(' && depth === 0) start = at + 1
    else if (end === undefined && character === ')' && depth === 0) end = at
  })
  return start === undefined || end === undefined || start === end ? undefined : [start, end]
}

function partsOf(text: string): readonly string[] {
  const cuts: number[] = []
  eachWithDepth(text, (character, depth, at) => {
    if (character === ',' && depth === 0) cuts.push(at)
  })
  return [...cuts, text.length].map((cut, index) =>
    text.slice(index === 0 ? 0 : (cuts[index - 1] ?? 0) + 1, cut),
  )
}

/** A bracket has the depth of what it stands in; the one of an arrow is none. */
function eachWithDepth(
  text: string,
  see: (character: string, depth: number, at: number) => void,
): void {
  let depth = 0
  for (const [at, character] of [...text].entries()) {
    const isArrow = character === '>' && text[at - 1] === '='
    if (CLOSING.includes(character) && !isArrow) depth -= 1
    see(character, depth, at)
    if (OPENING.includes(character)) depth += 1
  }
}
