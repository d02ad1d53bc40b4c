import { access } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { allDocuments, ROOT, readDocument } from './documents.js'
import { sections } from './markdown.js'

const DOCUMENTS = await allDocuments()

/** As GitHub, npm and the site make the anchor of a heading. */
const anchorOf = (title: string): string =>
  title
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

const anchorsOf = async (document: string): Promise<string[]> =>
  sections(await readDocument(document)).map(({ heading }) => anchorOf(heading))

it.each(DOCUMENTS)('%s has no link that leads nowhere', async (document) => {
  const text = await readDocument(document)
  for (const [, link = ''] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
    const [file, anchor] = link.split('#')
    const target = file ? join(dirname(document), file) : document
    await expect(access(`${ROOT}${target}`), link).resolves.toBeUndefined()
    if (anchor !== undefined) expect(await anchorsOf(target), link).toContain(anchor)
  }
})

it('has each page of docs in the index, decisions apart', async () => {
  const text = await readDocument('docs/README.md')
  const pages = DOCUMENTS.filter((path) => /^docs\/(?!decisions\/|README)/.test(path))
  expect(pages.filter((path) => !text.includes(`](${path.replace('docs/', '')})`))).toEqual([])
})
