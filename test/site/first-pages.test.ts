import { expect, it } from 'vitest'
import { listOfDecisions, withDecisions } from '../../site/make/decisions.js'
import { homePage } from '../../site/make/home.js'
import { piecesOf } from '../../site/make/piece.js'

const GROUPS = [
  {
    name: 'Begin',
    pages: [{ path: 'book/index', about: 'All of it.', holds: ['docs/book.md#*'] }],
  },
  { name: 'Why', pages: [] },
]

it('makes the first page of the README, with cards that lead on', () => {
  const [readme] = piecesOf('README.md', '# a-package\n\nWhat it is.\n\n- more\n')
  if (readme === undefined) throw new Error('there is no README')
  const text = homePage(readme, GROUPS, ['book/index'], (path) => `Title of ${path}`)
  const front = JSON.parse(text.replaceAll(/^---$/gm, ''))
  expect([front.hero.name, front.hero.tagline]).toEqual(['a-package', 'What it is.'])
  expect(front.features).toEqual([
    { title: 'Title of book/index', details: 'All of it.', link: '/book/' },
  ])
})

it('gives each decision a page, and their folder a list', () => {
  const documents = new Map([
    ['docs/decisions/why.md', '# Why so\n'],
    ['docs/decisions/how.md', '# How so\n'],
    ['docs/book.md', '# Book\n'],
  ])
  const pages = withDecisions(GROUPS, documents, 'Why')[1]?.pages
  expect(pages?.map(({ path }) => path)).toEqual(['decisions/how', 'decisions/why'])
  const list = listOfDecisions(documents, 'Why')
  expect(list.text).toContain('- [How so](/decisions/how)\n- [Why so](/decisions/why)\n')
  expect(list.standsFor).toEqual(['docs/decisions'])
})
