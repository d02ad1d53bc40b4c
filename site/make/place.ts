import type { Piece } from './piece.js'

/** What a page holds, as `site/make/table.ts` says it. */
export interface PageOfTable {
  /** Below the site's root, without an ending. */
  readonly path: string
  /** What the navigation calls it; default: the heading of its first piece. */
  readonly name?: string
  /** The page's heading; default: that of its first piece, whose parts then go up by a level. */
  readonly title?: string
  /** One sentence for the page's card on the first page, and for search engines. */
  readonly about?: string
  /** Pieces by their ids, in order; `docs/calling.md#*` are all of a document. */
  readonly holds: readonly string[]
  /** Whether the tables of reasons become headings, which can be linked to and found by a search. */
  readonly rowsAsHeadings?: true
}

export interface PlacedPage extends Omit<PageOfTable, 'holds'> {
  readonly pieces: readonly Piece[]
}

export interface Placed {
  readonly pages: readonly PlacedPage[]
  /** One line each; none when every piece has exactly one place. */
  readonly faults: readonly string[]
}

/**
 * Puts each piece where the table says.
 *
 * @param leftOut ids of the pieces that need no place.
 */
export function placePieces(
  pieces: readonly Piece[],
  pages: readonly PageOfTable[],
  leftOut: readonly string[],
): Placed {
  const faults: string[] = []
  const placeOf = new Map<string, string>(leftOut.map((id) => [id, 'the pieces that are left out']))
  const known = new Set(pieces.map(({ id }) => id))
  for (const id of leftOut) if (!known.has(id)) faults.push(`${id} is left out, and is not there.`)

  function taken(path: string, entry: string): readonly Piece[] {
    const found = pieces.filter((piece) => isMeant(piece, entry))
    if (found.length === 0) faults.push(`/${path} holds ${entry}, which is not there.`)
    for (const { id } of found) {
      const other = placeOf.get(id)
      if (other !== undefined) faults.push(`${id} has two places: ${other} and /${path}.`)
      placeOf.set(id, `/${path}`)
    }
    return found
  }

  const placed = pages.map(({ holds, ...page }) => ({
    ...page,
    pieces: holds.flatMap((entry) => taken(page.path, entry)),
  }))
  const unplaced = pieces.filter(({ id }) => !placeOf.has(id))
  return {
    pages: placed,
    faults: [...faults, ...unplaced.map(({ id }) => `${id} has no place in site/make/table.ts.`)],
  }
}

const isMeant = (piece: Piece, entry: string): boolean =>
  entry.endsWith('#*') ? `${piece.file}#*` === entry : piece.id === entry
