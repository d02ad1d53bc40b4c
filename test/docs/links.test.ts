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

describe('the README', () => {
  it('links to every page of docs, decisions apart', async () => {
    const text = await readDocument('README.md')
    const pages = DOCUMENTS.filter((path) => /^docs\/(?!decisions\/)/.test(path))
    expect(pages.filter((path) => !text.includes(`](${path}`))).toEqual([])
  })

  it('has at most 300 lines', async () => {
    const text = await readDocument('README.md')
    expect(text.trimEnd().split('\n').length).toBeLessThanOrEqual(300)
  })
})
