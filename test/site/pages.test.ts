import { describe, expect, it } from 'vitest'
import type { MadePage } from '../../site/make/made-page.js'
import { makeSite, type Site, type Sources } from '../../site/make/site.js'

const README = `# a-package

What it is. See [the policy](#the-policy).

## Contents

[all](#the-policy)

## The policy

Strict, by [rules](docs/book.md#rules) and [more](#more).

### More

\`\`\`ts
const heading = '## The order'
const text = 'see [it](#nowhere)'
\`\`\`

## The order

As [decided](docs/decisions/why.md).
`

const BOOK = `# Book

[Source](../src/index.ts) and [policy](../README.md#the-policy), [README](../README.md#more), [docs/book.md](book.md).

## Rules

| reason | it means | what to do |
| --- | --- | --- |
| \`gone\` | it is | [look](#after) |
| \`late\` | it was | |

### After

[Elsewhere](https://example.com/#x).

### After
`

const SOURCES: Sources = {
  documents: new Map([
    ['README.md', README],
    ['docs/book.md', BOOK],
    ['docs/decisions/why.md', '# Why\n'],
  ]),
  groups: [
    {
      name: 'Begin',
      pages: [
        { path: 'start', title: 'Start', holds: ['README.md', 'README.md#the-order'] },
        { path: 'policy', holds: ['README.md#the-policy'] },
        { path: 'book/index', holds: ['docs/book.md#*'] },
        { path: 'why', name: 'Reasons', holds: ['docs/decisions/why.md#*'] },
      ],
    },
  ],
  leftOut: ['README.md#contents'],
  made: [],
  isThere: (path) => path === 'src/index.ts' || path === 'docs/picture.svg',
  sourceBase: undefined,
}

const made = (change: Partial<Sources>): Site => makeSite({ ...SOURCES, ...change })

const withReadme = (text: string): Sources['documents'] =>
  new Map([...SOURCES.documents, ['README.md', `${README}${text}`]])

const holding = (...holds: string[]): Sources['groups'] => [
  ...SOURCES.groups,
  { name: 'More', pages: [{ path: 'more', holds }] },
]

describe('the pages of the site', () => {
  const { pages, faults, navigation } = made({})

  it('have their sections, under headings that fit', () => {
    expect(faults).toEqual([])
    expect(pages.get('start')).toBe(
      '# Start {#a-package}\n\nWhat it is. See [the policy](/policy).\n\n' +
        '## The order {#the-order}\n\nAs [decided](/why).\n',
    )
    expect(pages.get('policy')).toContain('# The policy {#the-policy}')
    expect(pages.get('policy')).toContain('\n## More {#more}\n')
  })

  it('lead to pages, and leave code and other sites alone', () => {
    expect(pages.get('policy')).toContain('by [rules](/book/#rules) and [more](/policy#more)')
    expect(pages.get('policy')).toContain("'see [it](#nowhere)'")
    expect(pages.get('book/index')).toContain('Source and [policy](/policy)')
    expect(pages.get('book/index')).toContain('[Elsewhere](https://example.com/#x)')
  })

  it('name what they lead to where they were named after a file', () => {
    expect(pages.get('book/index')).toContain('[More](/policy#more), [Book](/book/).')
  })

  it('lead to the source where it can be read', () => {
    const { pages } = made({ sourceBase: 'https://example.com/blob/main/' })
    expect(pages.get('book/index')).toContain(
      '[Source](https://example.com/blob/main/src/index.ts)',
    )
  })

  it('tell two headings of a name apart as GitHub does', () => {
    expect(pages.get('book/index')).toMatch(/### After \{#after\}[\s\S]*### After \{#after-1\}/)
  })

  it('are in the navigation, in its order', () => {
    expect(navigation).toEqual([
      {
        text: 'Begin',
        items: [
          { text: 'Start', link: '/start' },
          { text: 'The policy', link: '/policy' },
          { text: 'Book', link: '/book/' },
          { text: 'Reasons', link: '/why' },
        ],
      },
    ])
  })

  it('make headings of the reasons in a table, and an index of them', () => {
    const [{ pages: table, name }] = SOURCES.groups as [Sources['groups'][number]]
    const groups = [
      {
        name,
        pages: table.map((page) =>
          page.path === 'book/index' ? { ...page, rowsAsHeadings: true as const } : page,
        ),
      },
    ]
    const text = made({ groups }).pages.get('book/index')
    expect(text).toContain(
      '#### `gone` {#gone}\n\n**It means:** it is\n\n**What to do:** [look](/book/#after)\n\n' +
        '#### `late` {#late}\n\n**It means:** it was\n',
    )
  })
})

describe('pages that a program makes', () => {
  const page = (change: Partial<MadePage>): MadePage => ({
    path: 'reference/client',
    title: 'Client',
    group: 'Begin',
    text: '# Client\n\n## Options\n\n## Options\n',
    ...change,
  })

  it('stand in the navigation, and links lead to them and from them', () => {
    const text = '# All\n\n[a](/reference/client#options-1) [b](/README.md#more) [c](./client.md)\n'
    const other = page({ path: 'reference/all', text, standsFor: ['bench/README.md'] })
    const documents = withReadme('\n[figures](bench/README.md)\n')
    const site = made({ made: [page({}), other], documents })
    expect(site.faults).toEqual([])
    expect(site.pages.get('reference/all')).toContain(
      '[a](/reference/client#options-1) [b](/policy#more) [c](/reference/client)',
    )
    expect(site.pages.get('start')).toContain('[figures](/reference/all)')
    expect(site.navigation[0]?.items.at(-1)?.link).toBe('/reference/all')
  })

  it('must have a group and a path of their own', () => {
    expect(made({ made: [page({ group: 'None' })] }).faults).toEqual([
      '/reference/client is not in the navigation: no group «None».',
    ])
    expect(made({ made: [page({ path: 'start' })] }).faults).toContain(
      'There are two pages /start.',
    )
  })
})

describe('faults', () => {
  it.each([
    [
      'a section without a place',
      { documents: withReadme('\n## New\n') },
      'README.md#new has no place in site/make/table.ts.',
    ],
    [
      'a section with two places',
      { groups: holding('README.md#the-policy') },
      'README.md#the-policy has two places: /policy and /more.',
    ],
    [
      'a section that is not there',
      { groups: holding('README.md#gone') },
      '/more holds README.md#gone, which is not there.',
    ],
    [
      'one that is left out and is not there',
      { leftOut: ['README.md#contents', 'README.md#gone'] },
      'README.md#gone is left out, and is not there.',
    ],
    [
      'an anchor that is not there',
      { documents: withReadme('[x](#gone)') },
      'README.md: the link to #gone leads nowhere: README.md has no such heading.',
    ],
    [
      'an anchor of another document',
      { documents: withReadme('[x](docs/book.md#gone)') },
      'README.md: the link to docs/book.md#gone leads nowhere: docs/book.md has no such heading.',
    ],
    [
      'a file that is not there',
      { documents: withReadme('[x](src/gone.ts)') },
      'README.md: the link to src/gone.ts leads nowhere: there is no src/gone.ts.',
    ],
    [
      'a section that is on no page',
      { documents: withReadme('[x](#contents)') },
      'README.md: the link to #contents leads nowhere: README.md has no such heading.',
    ],
    [
      'what VitePress would take for a program',
      { documents: withReadme('A {{ name }} and `{{ code }}`.') },
      '/start has two curly brackets outside of code.',
    ],
    [
      'an image that is not there',
      { documents: withReadme('![x](docs/gone.svg)') },
      'README.md: the link to docs/gone.svg leads nowhere: there is no docs/gone.svg.',
    ],
  ])('tell of %s', (_, change, fault) => {
    expect(made(change).faults).toEqual([fault])
  })

  it('are none for an image that is there', () => {
    const { faults, images, pages } = made({ documents: withReadme('![x](docs/picture.svg)') })
    expect([faults, [...images]]).toEqual([[], ['docs/picture.svg']])
    expect(pages.get('start')).toContain('![x](/docs/picture.svg)')
  })
})
