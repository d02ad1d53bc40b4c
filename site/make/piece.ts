import { anchorGiver, headingOf, linesOf } from './markdown.js'

/** A part of a document that goes to a page as a whole: what stands under a heading of the second level. */
export interface Piece {
  /** `README.md#quick-start`; of what stands before the first such heading `README.md`. */
  readonly id: string
  /** From the root of the repository. */
  readonly file: string
  readonly title: string
  readonly level: 1 | 2
  /** Of its heading, in the document. */
  readonly anchor: string
  /** What follows the heading. The headings in it have their anchors: `### Title {#anchor}`. */
  readonly text: string
}

/** A document in its pieces, from top to bottom. */
export function piecesOf(file: string, markdown: string): readonly Piece[] {
  const anchorFor = anchorGiver()
  const pieces: (Omit<Piece, 'text'> & { readonly lines: string[] })[] = []
  for (const line of linesOf(markdown)) {
    const heading = headingOf(line)
    if (heading === undefined) {
      pieces.at(-1)?.lines.push(line.text)
      continue
    }
    const { level, title } = heading
    const anchor = anchorFor(heading)
    if (level === 1) pieces.push({ id: file, file, title, level, anchor, lines: [] })
    else if (level === 2)
      pieces.push({ id: `${file}#${anchor}`, file, title, level, anchor, lines: [] })
    else pieces.at(-1)?.lines.push(headingLine(level, title, anchor))
  }
  return pieces.map(({ lines, ...piece }) => ({ ...piece, text: lines.join('\n').trim() }))
}

export const headingLine = (level: number, title: string, anchor: string): string =>
  `${'#'.repeat(level)} ${title} {#${anchor}}`
