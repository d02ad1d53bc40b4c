import { posix } from 'node:path'
import { type Link, replaceLinks } from './markdown.js'

/** Where links may lead. */
export interface Destinations {
  /**
   * The address on the site of what stands in a document or on a page: of `README.md`, of
   * `docs/policy.md#key-sets`, of `/policy` and of `/policy#key-sets`.
   */
  readonly addresses: ReadonlyMap<string, string>
  /** By the same names: the heading that stands there. */
  readonly titles: ReadonlyMap<string, string>
  /** Whether the repository has a file or a folder. */
  isThere(path: string): boolean
  /** Where the repository's files can be read, with a slash at the end; none: they are only named. */
  readonly sourceBase: string | undefined
}

export interface Rewritten {
  readonly text: string
  /** Files of the repository that the text shows. */
  readonly images: readonly string[]
  readonly faults: readonly string[]
}

/** Lets the links of a part of a page lead to pages. */
export function rewriteLinks(file: string, markdown: string, to: Destinations): Rewritten {
  const faults: string[] = []
  const images: string[] = []

  function faulty(link: Link, why: string): string {
    faults.push(`${file}: the link to ${link.target} leads nowhere: ${why}.`)
    return link.whole
  }

  function rewritten(link: Link): string {
    const target = resolveTarget(file, link.target)
    if (target === undefined) return link.isImage ? faulty(link, 'images are files') : link.whole
    const [page = '', anchor] = target.split('#')
    const path = page.replace(/^\//, '')
    if (link.isImage) {
      if (!to.isThere(path)) return faulty(link, `there is no ${path}`)
      images.push(path)
      return `![${link.text}](/${path})`
    }
    const places = placesOf(page)
    const ids = places.map((place) => (anchor === undefined ? place : `${place}#${anchor}`))
    const id = ids.find((one) => to.addresses.has(one))
    if (id !== undefined) {
      const title = FILE_NAME.test(link.text) ? to.titles.get(id) : undefined
      return `[${title ?? link.text}](${to.addresses.get(id)})`
    }
    if (places.some((place) => to.addresses.has(place)))
      return faulty(link, `${page} has no such heading`)
    if (!to.isThere(path)) return faulty(link, `there is no ${path}`)
    if (path.endsWith('.md')) return faulty(link, `${path} is on no page`)
    return to.sourceBase === undefined ? link.text : `[${link.text}](${to.sourceBase}${path})`
  }

  return { text: replaceLinks(markdown, rewritten), images, faults }
}

/** A link that is named after a file says nothing where there are pages. */
const FILE_NAME = /^`?(?:README(?:\.md)?|[\w/-]+\.md)`?$/

/**
 * What a link means, from the root of the repository; where it begins with a slash, or stands on a page
 * that was made, from the root of the site.
 *
 * @returns undefined for one that leads to another site
 */
function resolveTarget(file: string, target: string): string | undefined {
  if (/^[a-z][a-z+.-]*:|^\/\//i.test(target)) return undefined
  const [path = '', anchor] = target.split('#')
  const whole = path === '' ? file : posix.resolve(posix.dirname(`/${file}`), path)
  const isOnSite = file.startsWith('/') || path.startsWith('/')
  const plain = isOnSite ? whole : whole.replace(/^\//, '')
  return anchor === undefined ? plain : `${plain}#${anchor}`
}

/** A page, with or without its ending, or a document that is named from the root of the site. */
const placesOf = (page: string): readonly string[] => [
  page,
  page.replace(/\.(?:md|html)$/, ''),
  page.replace(/^\//, ''),
]
