import { access } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT, readDocument } from './blocks.js'
import { allDocuments } from './documents.js'
import { sections } from './markdown.js'

/** As GitHub, npm and the site make the anchor of a heading. */
const anchorOf = (title: string): string =>
  title
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

const DOCUMENTS = await allDocuments()

const anchorsOf = async (document: string): Promise<string[]> =>
  sections(await readDocument(document)).map(({ heading }) => anchorOf(heading))

async function leadsNowhere(document: string, link: string): Promise<boolean> {
  const [file, anchor] = link.split('#')
  const target = file ? join(dirname(document), file) : document
  const isThere = await access(`${ROOT}${target}`).then(
    () => true,
    () => false,
  )
  if (!isThere) return true
  return anchor !== undefined && !(await anchorsOf(target)).includes(anchor)
}

describe.each(DOCUMENTS)('%s', (document) => {
  it('has no link that leads nowhere', async () => {
    const text = await readDocument(document)
    const links = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link ?? '')
    const broken: string[] = []
    for (const link of links.filter((one) => !/^https?:/.test(one))) {
      if (await leadsNowhere(document, link)) broken.push(link)
    }
    expect(broken).toEqual([])
  })
})

describe('the index', () => {
  it('links to every page of docs, decisions apart', async () => {
    const text = await readDocument('docs/README.md')
    const pages = DOCUMENTS.filter((path) => /^docs\/(?!decisions\/|README)/.test(path))
    expect(pages.filter((path) => !text.includes(`](${path.replace('docs/', '')})`))).toEqual([])
  })
})

describe('the README', () => {
  it('has at most 220 lines', async () => {
    const text = await readDocument('README.md')
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(220)
  })

  it('names ten pages and the index at its end', async () => {
    const found = sections(await readDocument('README.md'))
    const text = found.find(({ heading }) => heading === 'Documentation')?.text ?? ''
    expect(text.match(/\]\(docs\/(?!README)/g)).toHaveLength(10)
    expect(text).toContain('](docs/README.md)')
  })
})
