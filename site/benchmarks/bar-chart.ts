/** Something that was measured. */
export interface Bar {
  readonly label: string
  readonly value: number
  /** As it is written behind the bar. */
  readonly text: string
  /** Whether it is this package, and stands out. */
  readonly isOurs: boolean
}

export interface BarChart {
  /** Unique on its page, for the names of what the picture holds. */
  readonly id: string
  readonly title: string
  /** What the lengths mean. */
  readonly description: string
  readonly bars: readonly Bar[]
}

/** As wide as a page is on a small screen, so that letters keep their size there. */
const WIDTH = 342
const ROW_HEIGHT = 42
const LABEL_BASE = 13
const BAR_TOP = 18
const BAR_HEIGHT = 14
/** Room for the figure behind the longest bar. */
const FIGURE_WIDTH = 74
const GAP = 6

/**
 * A picture of bars, one a row below its label, as SVG in one line: Markdown would end it at an empty one.
 * Its colours are the page's own, in light and dark.
 */
export function barChart({ id, title, description, bars }: BarChart): string {
  const height = bars.length * ROW_HEIGHT
  const longest = Math.max(...bars.map(({ value }) => value))
  const names = `aria-labelledby="${id}-title ${id}-description"`
  return [
    `<svg class="bar-chart" role="img" ${names} viewBox="0 0 ${WIDTH} ${height}"`,
    ' style="width:100%;max-width:400px;height:auto;font-family:inherit">',
    `<title id="${id}-title">${escaped(title)}</title>`,
    `<desc id="${id}-description">${escaped(description)}</desc>`,
    ...bars.map((bar, index) => row(bar, { top: index * ROW_HEIGHT, longest })),
    '</svg>',
  ].join('')
}

function row(
  { label, value, text, isOurs }: Bar,
  { top, longest }: { readonly top: number; readonly longest: number },
): string {
  const length = Math.max(1, Math.round((value / longest) * (WIDTH - FIGURE_WIDTH)))
  const ink = 'var(--vp-c-text-1, currentColor)'
  const colour = isOurs
    ? 'var(--vp-c-brand-1, currentColor)'
    : 'var(--vp-c-text-3, var(--vp-c-text-2, currentColor))'
  const weight = isOurs ? ' font-weight="600"' : ''
  const middle = top + BAR_TOP + BAR_HEIGHT - 2
  return [
    `<text x="0" y="${top + LABEL_BASE}" font-size="13"${weight} fill="${ink}">${escaped(label)}</text>`,
    `<rect x="0" y="${top + BAR_TOP}" width="${length}" height="${BAR_HEIGHT}" rx="2" fill="${colour}"/>`,
    `<text x="${length + GAP}" y="${middle}" font-size="13"${weight} fill="${ink}">${escaped(text)}</text>`,
  ].join('')
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
