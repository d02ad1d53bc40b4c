/** A line of Markdown, and whether it belongs to a block of code. */
export interface Line {
  readonly text: string
  readonly isCode: boolean
}

export function linesOf(markdown: string): readonly Line[] {
  let fence: string | undefined
  return markdown.split('\n').map((text) => {
    const mark = /^ *(```+)/.exec(text)?.[1]
    const isCode = fence !== undefined || mark !== undefined
    if (fence === undefined) fence = mark
    else if (mark?.startsWith(fence)) fence = undefined
    return { text, isCode }
  })
}

export interface Heading {
  readonly level: number
  readonly title: string
  /** As it was given: `## Title {#anchor}`. */
  readonly anchor: string | undefined
}

/** The heading that a line is, if it is one. */
export function headingOf({ text, isCode }: Line): Heading | undefined {
  if (isCode) return undefined
  const [, marks, title, anchor] = /^(#{1,6}) +(.+?)(?: +\{#([^}\s]+)\})?\s*$/.exec(text) ?? []
  return marks && title ? { level: marks.length, title, anchor } : undefined
}

/** As GitHub and npm make the anchor of a heading. */
export const anchorOf = (title: string): string =>
  title
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

/** Gives each heading an anchor of its own: the second of a name ends in `-1`. */
export function anchorGiver(): (heading: Heading) => string {
  const given = new Map<string, number>()
  return ({ title, anchor }) => {
    const name = anchor ?? anchorOf(title)
    const before = given.get(name) ?? 0
    given.set(name, before + 1)
    return before === 0 ? name : `${name}-${before}`
  }
}

/** A link or an image in a text. */
export interface Link {
  readonly isImage: boolean
  /** What stands between the brackets. */
  readonly text: string
  readonly target: string
  /** All of it. */
  readonly whole: string
}

/** Inline code, or a link; code that looks like a link stays code. */
const CODE_OR_LINK =
  /(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)\1(?!`)|(!?)\[((?:`[^`]*`|\\.|[^[\]`\\]|\[[^\]]*\])*)\]\(([^)\s]+)(?: +"[^"]*")?\)/gs

const INLINE_CODE = /(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)*?(?<!`)\1(?!`)/gs

/** Whether something stands outside of code. */
export const isInProse = (markdown: string, text: string): boolean =>
  proseAndCode(markdown).some(
    (stretch) => !stretch.isCode && stretch.text.replaceAll(INLINE_CODE, '').includes(text),
  )

/** The addresses in what stands in Markdown as HTML. */
const ADDRESS = /(\b(?:src|srcset|href)=")([^"]+)(")/g

/** A text with each link replaced, outside of blocks of code. */
export function replaceLinks(markdown: string, replace: (link: Link) => string): string {
  const replaced = (text: string): string =>
    text
      .replaceAll(CODE_OR_LINK, (whole, code, mark, inner, target) =>
        code ? whole : replace({ isImage: mark === '!', text: inner, target, whole }),
      )
      .replaceAll(ADDRESS, (_, before, target, after) => {
        const isImage = !before.startsWith('href')
        return `${before}${addressIn(replace({ isImage, text: '', target, whole: `](${target})` }))}${after}`
      })
  return proseAndCode(markdown)
    .map(({ text, isCode }) => (isCode ? text : replaced(text)))
    .join('\n')
}

const addressIn = (link: string): string => /\]\(([^)\s]+)\)/.exec(link)?.[1] ?? ''

/** The text in stretches of lines that are code and that are not: a link may go on in the next line. */
function proseAndCode(markdown: string): readonly Line[] {
  const stretches: { text: string; isCode: boolean }[] = []
  for (const { text, isCode } of linesOf(markdown)) {
    const last = stretches.at(-1)
    if (last?.isCode === isCode) last.text += `\n${text}`
    else stretches.push({ text, isCode })
  }
  return stretches
}
