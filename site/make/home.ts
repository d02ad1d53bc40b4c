import type { Piece } from './piece.js'
import { addressOn, type Group } from './site.js'

/** The first page: what the README begins with, and cards that lead on. */
export function homePage(
  readme: Piece,
  groups: readonly Group[],
  cards: readonly string[],
  titleOf: (path: string) => string,
): string {
  const [tagline = ''] = readme.text.split('\n\n')
  const pages = new Map(groups.flatMap(({ pages }) => pages.map((page) => [page.path, page])))
  const action = (theme: 'brand' | 'alt', path: string) => ({
    theme,
    text: titleOf(path),
    link: addressOn(path),
  })
  const front = {
    layout: 'home',
    hero: {
      name: readme.title,
      tagline,
      actions: [
        action('brand', 'start'),
        action('alt', 'reasons'),
        action('alt', 'operations/index'),
      ],
    },
    features: cards.map((path) => ({
      title: titleOf(path),
      details: pages.get(path)?.about ?? '',
      link: addressOn(path),
    })),
  }
  // JSON is YAML.
  return `---\n${JSON.stringify(front, undefined, 2)}\n---\n`
}
