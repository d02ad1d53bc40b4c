/** A piece of TypeScript in a document, and the heading that it stands under. */
export interface CodeBlock {
  readonly heading: string
  readonly code: string
}

/** The `ts` blocks of a document, from top to bottom. */
export function codeBlocks(markdown: string): readonly CodeBlock[] {
  return sections(markdown).flatMap(({ heading, text }) =>
    [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => ({ heading, code: code ?? '' })),
  )
}

/** The blocks of a language in a text, from top to bottom. */
export function blocksOf(language: string, text: string): readonly string[] {
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))
  return [...blocks].map(([, block]) => block ?? '')
}

/** The languages of the blocks of a text, each as often as it is there. */
export const languagesOf = (text: string): readonly string[] =>
  [...text.matchAll(/^ *```(.*)$/gm)].flatMap(([, mark = ''], at) => (at % 2 === 0 ? [mark] : []))

/** The cells of all tables under a heading, without their head rows. */
export function tableRows(markdown: string, heading: string): readonly (readonly string[])[] {
  const text = sections(markdown).find((section) => section.heading === heading)?.text
  if (text === undefined) throw new Error(`there is no heading «${heading}»`)
  const tables = text.split(/\n\n+/).filter((paragraph) => paragraph.startsWith('| '))
  return tables.flatMap((table) => table.trim().split('\n').slice(2).map(cellsOf))
}

const cellsOf = (row: string): readonly string[] =>
  row
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim())

/** The names that a cell has in code. */
export const namesIn = (cell = ''): readonly string[] =>
  [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)

interface Section {
  readonly heading: string
  /** All that follows until the next heading of any depth. */
  readonly text: string
}

/** The parts of a document, by heading. */
export function sections(markdown: string): readonly Section[] {
  const found: { heading: string; lines: string[] }[] = [{ heading: '', lines: [] }]
  let isCode = false
  for (const line of markdown.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    const heading = isCode ? undefined : /^#+ (.+)$/.exec(line)?.[1]
    if (heading === undefined) found.at(-1)?.lines.push(line)
    else found.push({ heading, lines: [] })
  }
  return found.map(({ heading, lines }) => ({ heading, text: lines.join('\n').trim() }))
}

/** What stands in the doc comments of a program, without their marks. */
export const docCommentsIn = (source: string): string =>
  [...source.matchAll(/\/\*\*(.*?)\*\//gs)]
    .map(([, comment = '']) => comment.replaceAll(/^ *\* ?/gm, ''))
    .join('\n\n')
