import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listOfDecisions, withDecisions } from './decisions.js'
import { homePage } from './home.js'
import type { MadePage } from './made-page.js'
import { piecesOf } from './piece.js'
import { addressOn, makeSite, type Site } from './site.js'
import { CARDS, DECISIONS, GROUPS, LEFT_OUT } from './table.js'

/** Writes the pages of the site, as Markdown, for VitePress. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const OUTPUT = join(ROOT, 'site', 'made')
const PAGES = join(OUTPUT, 'pages')

/** Programs that make pages, from this folder. They throw an Error that names what is missing. */
const MAKERS: readonly string[] = ['../benchmarks/pages.js', '../reference/pages.js']

async function readDocuments(): Promise<ReadonlyMap<string, string>> {
  const inDocs = await readdir(join(ROOT, 'docs'), { recursive: true })
  const atRoot = [
    'README.md',
    'CONTRIBUTING.md',
    'CODE_OF_CONDUCT.md',
    'SECURITY.md',
    'CHANGELOG.md',
  ]
  const ofExample = 'example-app/identity-core/README.md'
  const files = [...atRoot, ofExample, ...inDocs.map((one) => `docs/${one}`)]
  const documents = files.filter((file) => file.endsWith('.md')).sort()
  return new Map(
    await Promise.all(
      documents.map(async (file) => [file, await readFile(join(ROOT, file), 'utf8')] as const),
    ),
  )
}

async function madeByPrograms(): Promise<readonly MadePage[]> {
  const made = await Promise.all(
    MAKERS.map(async (maker) => {
      const { madePages }: { madePages(): Promise<readonly MadePage[]> } = await import(maker)
      return madePages()
    }),
  )
  return made.flat()
}

async function filesOfRepository(): Promise<ReadonlySet<string>> {
  const folders = ['src', 'docs', 'bench', 'example-app', 'test', 'site']
  const found = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(join(ROOT, folder), { recursive: true })
      return [folder, ...names.map((name) => `${folder}/${name}`)]
    }),
  )
  return new Set([...(await readdir(ROOT)), ...found.flat()])
}

async function write(site: Site, home: string): Promise<void> {
  await rm(OUTPUT, { recursive: true, force: true })
  const files = new Map([...site.pages, ['index', home]])
  await Promise.all(
    [...files].map(async ([path, text]) => {
      const file = join(PAGES, `${path}.md`)
      await mkdir(dirname(file), { recursive: true })
      await writeFile(file, text)
    }),
  )
  await Promise.all(
    [...site.images].map((image) => cp(join(ROOT, image), join(PAGES, 'public', image))),
  )
  await writeFile(join(OUTPUT, 'navigation.json'), JSON.stringify(site.navigation, undefined, 2))
}

const base = process.env['SITE_BASE'] ?? '/'
if (!/^\/(?:.*\/)?$/.test(base)) {
  console.error(`SITE_BASE begins and ends with a slash, which ${base} does not.`)
  process.exit(1)
}

const documents = await readDocuments()
const groups = withDecisions(GROUPS, documents, DECISIONS)
const files = await filesOfRepository()
const site = makeSite({
  documents,
  groups,
  leftOut: LEFT_OUT,
  made: [...(await madeByPrograms()), listOfDecisions(documents, DECISIONS)],
  isThere: (path) => files.has(path),
  sourceBase: process.env['SITE_SOURCE'],
})

const names = new Map(
  site.navigation.flatMap(({ items }) => items.map(({ link, text }) => [link, text] as const)),
)
const titleOf = (path: string): string => names.get(addressOn(path)) ?? `no page ${path}`
const [readme] = piecesOf('README.md', documents.get('README.md') ?? '')

if (site.faults.length > 0 || readme === undefined) {
  console.error(site.faults.join('\n'))
  process.exitCode = 1
} else {
  await write(site, homePage(readme, groups, CARDS, titleOf))
}
