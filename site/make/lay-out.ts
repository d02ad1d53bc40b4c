import { anchorGiver, anchorOf, headingOf, linesOf } from './markdown.js'
import { headingLine, type Piece } from './piece.js'
import type { PlacedPage } from './place.js'
import { rowsAsHeadings } from './reason-rows.js'

/** A part of a page, whose links are still those of its document. */
export interface Part {
  /** What its relative links start from. */
  readonly file: string
  readonly text: string
}

export interface LaidOut {
  readonly path: string
  readonly title: string
  readonly parts: readonly Part[]
  /** Of every heading on the page, in order. */
  readonly headings: readonly PageHeading[]
  /** Where on the page a heading of a document has gone: `README.md#quick-start` to its anchor. */
  readonly anchors: ReadonlyMap<string, string>
}

export interface PageHeading {
  readonly level: number
  readonly title: string
  readonly anchor: string
}

/** Puts the pieces of a page below each other, under headings that fit. */
export function layOut(page: PlacedPage): LaidOut {
  const anchorFor = anchorGiver()
  const headings: PageHeading[] = []
  const anchors = new Map<string, string>()

  function headed(level: number, title: string, origin: { file: string; anchor: string }): string {
    const anchor = anchorFor({ level, title, anchor: origin.anchor })
    headings.push({ level, title, anchor })
    const id = `${origin.file}#${origin.anchor}`
    if (!anchors.has(id)) anchors.set(id, anchor)
    return headingLine(level, title, anchor)
  }

  function laidOut(piece: Piece, base: number): string {
    const { file, anchor, level, title } = piece
    const top = headed(base, title, { file, anchor })
    if (piece.id === file) anchors.set(file, headings.at(-1)?.anchor ?? '')
    const text = page.rowsAsHeadings ? rowsAsHeadings(piece.text) : piece.text
    const lines = linesOf(text).map((line) => {
      const heading = headingOf(line)
      if (heading === undefined) return line.text
      const origin = { file, anchor: heading.anchor ?? anchorOf(heading.title) }
      return headed(heading.level - level + base, heading.title, origin)
    })
    return [top, '', ...lines].join('\n')
  }

  const { title } = page
  const parts: Part[] = []
  const [first] = page.pieces
  const isLead = first?.level === 1
  if (title !== undefined && !isLead) {
    const text = headed(1, title, { file: `/${page.path}`, anchor: anchorOf(title) })
    parts.push({ file: 'README.md', text })
  }
  for (const [index, piece] of page.pieces.entries()) {
    const isTop = index === 0 && (isLead || title === undefined)
    const headedPiece = isTop && title !== undefined ? { ...piece, title } : piece
    parts.push({ file: piece.file, text: laidOut(headedPiece, isTop ? 1 : 2) })
  }
  return {
    path: page.path,
    title: title ?? page.pieces[0]?.title ?? page.path,
    parts,
    headings,
    anchors,
  }
}

/** The index of a page whose reasons are headings: one paragraph a chapter. */
export function indexOf(headings: readonly PageHeading[]): string {
  const chapters: string[] = []
  for (const { level, title, anchor } of headings) {
    if (level === 3) chapters.push(`- **[${title}](#${anchor})**`)
    if (level === 4) chapters.push(`${chapters.pop()} · [${title}](#${anchor})`)
  }
  return chapters.filter((chapter) => chapter.includes(' · ')).join('\n')
}
