import { printable } from '../../base/printable.js'

const GAP = '  '
/** Before the lines of a section. */
export const INDENT = '  '

/** Formats rows of cells. Each column is as wide as its widest cell; lines have no trailing spaces. */
export function columns(rows: readonly (readonly string[])[], indent = ''): string[] {
  const cells = rows.map((row) => row.map(printable))
  const widths: number[] = []
  for (const row of cells) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, [...cell].length)
    }
  }
  return cells.map((row) => {
    const padded = row.map(
      (cell, index) => cell + ' '.repeat((widths[index] ?? 0) - [...cell].length),
    )
    return `${indent}${padded.join(GAP)}`.trimEnd()
  })
}
