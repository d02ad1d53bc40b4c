/** What a page that was built refers to, and what others may refer to on it. */
export interface BuiltPage {
  readonly anchors: ReadonlySet<string>
  /** Where its links lead. */
  readonly links: readonly string[]
  /** What a browser fetches for it by itself. */
  readonly loads: readonly string[]
}

const TAG = /<([a-z][\w-]*)((?:\s+[^\s=>"'/]+(?:="[^"]*")?)*)\s*\/?>/gi
const ATTRIBUTE = /\s([^\s=>"'/]+)="([^"]*)"/g
/** Of `link`: those that fetch nothing. */
const NO_LOADS = new Set(['canonical', 'alternate', 'author', 'license'])

/** Reads what VitePress has written: attributes in double quotes. */
export function readBuiltPage(html: string): BuiltPage {
  const anchors = new Set<string>()
  const links: string[] = []
  const loads: string[] = []
  for (const [, tag = '', text = ''] of html.matchAll(TAG)) {
    const attributes = attributesIn(text)
    const { id, href, src, srcset, rel = '' } = attributes
    if (id) anchors.add(id)
    if (tag === 'a' && href) links.push(href)
    if (tag === 'link' && href && !NO_LOADS.has(rel)) loads.push(href)
    if (src) loads.push(src)
    if (srcset) loads.push(...addressesIn(srcset))
    if (attributes['data-src']) loads.push(attributes['data-src'])
  }
  return { anchors, links, loads: [...loads, ...loadsOfStyle(styleIn(html))] }
}

/** What a style sheet has a browser fetch. */
export const loadsOfStyle = (css: string): readonly string[] =>
  [...css.matchAll(/(?:url\(|@import\s+)\s*["']?([^"')\s;]+)/g)].map(([, address]) => address ?? '')

const styleIn = (html: string): string =>
  [...html.matchAll(/<style[^>]*>(.*?)<\/style>/gs)].map(([, css]) => css).join('\n')

const addressesIn = (srcset: string): readonly string[] =>
  srcset.split(',').map((one) => one.trim().split(/\s+/)[0] ?? '')

function attributesIn(text: string): Readonly<Record<string, string | undefined>> {
  const found = [...text.matchAll(ATTRIBUTE)].map(([, name = '', value = '']) => [
    name,
    value.replaceAll('&amp;', '&').replaceAll('&quot;', '"'),
  ])
  return Object.fromEntries(found)
}

/** Whether an address is another site's; `data:` is part of the page. */
export const isForeign = (address: string): boolean =>
  /^[a-z][a-z+.-]*:|^\/\//i.test(address) && !address.startsWith('data:')
