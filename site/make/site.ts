import { indexOf, type LaidOut, layOut } from './lay-out.js'
import { type Destinations, rewriteLinks } from './links.js'
import type { MadePage } from './made-page.js'
import { anchorGiver, headingOf, isInProse, linesOf } from './markdown.js'
import { headingLine, piecesOf } from './piece.js'
import { type PageOfTable, type PlacedPage, placePieces } from './place.js'

/** A group of the navigation. */
export interface Group {
  readonly name: string
  readonly pages: readonly PageOfTable[]
}

export interface Sources {
  /** The documents by their paths from the root of the repository. */
  readonly documents: ReadonlyMap<string, string>
  readonly groups: readonly Group[]
  readonly leftOut: readonly string[]
  readonly made: readonly MadePage[]
  readonly isThere: Destinations['isThere']
  readonly sourceBase: Destinations['sourceBase']
}

export interface Site {
  /** Markdown by the path of its page. */
  readonly pages: ReadonlyMap<string, string>
  /** Files of the repository that pages show. */
  readonly images: ReadonlySet<string>
  readonly navigation: readonly NavigationGroup[]
  /** One line each. */
  readonly faults: readonly string[]
}

export interface NavigationGroup {
  readonly text: string
  readonly items: readonly { readonly text: string; readonly link: string }[]
}

/** All pages of the site, from what the repository tells. */
export function makeSite(sources: Sources): Site {
  const { documents, groups, leftOut, made } = sources
  const pieces = [...documents].flatMap(([file, text]) => piecesOf(file, text))
  const placed = placePieces(
    pieces,
    groups.flatMap(({ pages }) => pages),
    leftOut,
  )
  const laidOut = placed.pages.map(layOut)
  const faults = [...placed.faults, ...faultsOfPaths(sources)]
  const destinations: Destinations = {
    ...sources,
    addresses: addressesOf(laidOut, made),
    titles: titlesOf(laidOut),
  }
  const images = new Set<string>()
  const rewritten = (file: string, text: string): string => {
    const result = rewriteLinks(file, text, destinations)
    for (const image of result.images) images.add(image)
    faults.push(...result.faults)
    return result.text
  }
  const pages = new Map(
    laidOut.map((page, index) => [page.path, textOf(page, placed.pages[index], rewritten)]),
  )
  for (const { path, text } of made) pages.set(path, rewritten(`/${path}`, withAnchors(text)))
  for (const [path, text] of pages) {
    // VitePress takes it for a program, and shows what becomes of it.
    if (isInProse(text, '{{')) faults.push(`/${path} has two curly brackets outside of code.`)
  }
  return { pages, images, navigation: navigationOf(groups, laidOut, made), faults }
}

function faultsOfPaths({ groups, made }: Sources): readonly string[] {
  const names = new Set(groups.map(({ name }) => name))
  const lost = made.filter(({ group }) => !names.has(group))
  const paths = [...groups.flatMap(({ pages }) => pages), ...made].map(({ path }) => path)
  const twice = paths.filter((path, index) => paths.indexOf(path) !== index)
  return [
    ...lost.map(({ path, group }) => `/${path} is not in the navigation: no group «${group}».`),
    ...twice.map((path) => `There are two pages /${path}.`),
  ]
}

function addressesOf(
  laidOut: readonly LaidOut[],
  made: readonly MadePage[],
): ReadonlyMap<string, string> {
  const addresses = new Map<string, string>()
  for (const { path, anchors, headings } of laidOut) {
    const address = addressOn(path)
    addresses.set(address, address)
    for (const [index, { anchor }] of headings.entries()) {
      addresses.set(`/${path}#${anchor}`, index === 0 ? address : `${address}#${anchor}`)
    }
    for (const [id, anchor] of anchors) {
      addresses.set(id, anchor === headings[0]?.anchor ? address : `${address}#${anchor}`)
    }
  }
  for (const { path, text, standsFor = [] } of made) {
    const address = addressOn(path)
    for (const id of [`/${path}`, ...standsFor]) addresses.set(id, address)
    const anchorFor = anchorGiver()
    for (const heading of linesOf(text).flatMap((line) => headingOf(line) ?? [])) {
      const anchor = anchorFor(heading)
      addresses.set(`/${path}#${anchor}`, `${address}#${anchor}`)
    }
  }
  return addresses
}

function titlesOf(laidOut: readonly LaidOut[]): ReadonlyMap<string, string> {
  const titles = new Map<string, string>()
  for (const { anchors, headings } of laidOut) {
    for (const [id, anchor] of anchors) {
      const heading = headings.find((one) => one.anchor === anchor)
      if (heading) titles.set(id, heading.title)
    }
  }
  return titles
}

/** The text with each heading's anchor in it. */
function withAnchors(markdown: string): string {
  const anchorFor = anchorGiver()
  const lines = linesOf(markdown).map((line) => {
    const heading = headingOf(line)
    return heading ? headingLine(heading.level, heading.title, anchorFor(heading)) : line.text
  })
  return lines.join('\n')
}

/** As VitePress writes it; that of a folder's first page ends in a slash. */
export const addressOn = (path: string): string => `/${path}`.replace(/\/index$/, '/')

function textOf(
  page: LaidOut,
  { about, rowsAsHeadings }: Pick<PlacedPage, 'about' | 'rowsAsHeadings'> = {},
  rewritten: (file: string, text: string) => string,
): string {
  const [first = '', ...others] = page.parts.map(({ file, text }) => rewritten(file, text))
  const index = rowsAsHeadings ? [indexOf(page.headings)] : []
  const front = about ? [`---\ndescription: ${JSON.stringify(about)}\n---`] : []
  return `${[...front, first, ...index, ...others].join('\n\n')}\n`
}

function navigationOf(
  groups: readonly Group[],
  laidOut: readonly LaidOut[],
  made: readonly MadePage[],
): readonly NavigationGroup[] {
  const titles = new Map(laidOut.map(({ path, title }) => [path, title]))
  return groups.map(({ name, pages }) => ({
    text: name,
    items: [
      ...pages.map((page) => ({
        text: (page.name ?? titles.get(page.path) ?? page.path).replaceAll('`', ''),
        link: addressOn(page.path),
      })),
      ...made
        .filter(({ group }) => group === name)
        .map(({ path, title }) => ({ text: title, link: addressOn(path) })),
    ],
  }))
}
