import { posix } from 'node:path'
import { type BuiltPage, isForeign, loadsOfStyle, readBuiltPage } from './built-page.js'

/** A site that was built. */
export interface Built {
  /** All its files, from its root. */
  readonly files: ReadonlySet<string>
  /** What stands in those that are HTML or CSS. */
  readonly texts: ReadonlyMap<string, string>
  /** The path that it is served at: begins and ends with a slash. */
  readonly base: string
  /** The links of the navigation, without the base. */
  readonly navigation: readonly string[]
}

/** Pages that need no place in the navigation. */
const OUTSIDE = new Set(['index.html', '404.html'])

/** What is wrong with it, one line each. */
export function faultsOfBuilt(built: Built): readonly string[] {
  const entries = [...built.texts].filter(([file]) => file.endsWith('.html'))
  const pages = new Map(entries.map(([file, html]) => [file, readBuiltPage(html)]))
  const named = new Set(built.navigation.map((link) => fileOf(link, '/', '')))
  return [
    ...[...pages].flatMap(([file, page]) => [
      ...faultsOfLinks(file, page, { built, pages }),
      ...page.loads.flatMap((load) => faultsOfLoad(file, load, built)),
    ]),
    ...[...built.texts]
      .filter(([file]) => file.endsWith('.css'))
      .flatMap(([file, css]) =>
        loadsOfStyle(css).flatMap((load) => faultsOfLoad(file, load, built)),
      ),
    ...[...pages.keys()]
      .filter((file) => !OUTSIDE.has(file) && !named.has(file))
      .map((file) => `${file} is not in the navigation.`),
  ]
}

function faultsOfLinks(
  file: string,
  page: BuiltPage,
  { built, pages }: { built: Built; pages: ReadonlyMap<string, BuiltPage> },
): readonly string[] {
  return page.links
    .filter((link) => !isForeign(link))
    .flatMap((link) => {
      const [path = '', anchor] = link.split('#')
      const target = path === '' ? file : fileOf(path, built.base, file)
      if (!built.files.has(target)) return [`${file}: the link to ${link} leads nowhere.`]
      const isThere = !anchor || pages.get(target)?.anchors.has(decodeURIComponent(anchor))
      return isThere ? [] : [`${file}: the link to ${link} leads to no heading of ${target}.`]
    })
}

function faultsOfLoad(file: string, load: string, built: Built): readonly string[] {
  if (load.startsWith('data:') || load.startsWith('#')) return []
  if (isForeign(load)) return [`${file} loads ${load} from elsewhere.`]
  return built.files.has(fileOf(load, built.base, file))
    ? []
    : [`${file} loads ${load}, which is not there.`]
}

/** The file that an address means. */
function fileOf(address: string, base: string, from: string): string {
  const [path = ''] = address.split(/[?#]/)
  const whole = path.startsWith('/')
    ? path.startsWith(base) && path.slice(base.length)
    : posix.join(posix.dirname(from), path)
  if (whole === false) return `${path}, outside of ${base}`
  if (whole === '' || whole.endsWith('/')) return `${whole}index.html`
  return posix.extname(whole) === '' ? `${whole}.html` : whole
}
