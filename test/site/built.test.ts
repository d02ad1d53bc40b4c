import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { ROOT } from '../docs/blocks.js'
import { BUILT } from './serve-site.js'

const read = (path: string): Promise<string> => readFile(`${ROOT}${path}`, 'utf8')
const { exports } = JSON.parse(await read('package.json'))
const entries = Object.keys(exports)
  .filter((path) => exports[path].types)
  .map((path) => ({ name: path.replace('.', 'express-service-auth') }))

/** Of a module of the site, which has no types. */
const modules = (name: string) => import(`${ROOT}site/${name}`)
const { ENTRY_POINTS } = await modules('entry-points.js')

it.each(entries)('the page of $name has every export of its index', async ({ name }) => {
  const entry = ENTRY_POINTS.find((one: { name: string }) => one.name === name)
  const index = await read(`src/${entry.source}.ts`)
  const names = [...index.matchAll(/^export (?:type )?\{(.*?)\} from /gms)].flatMap(
    ([, clause = '']) => clause.match(/\b(?!type\b)[\w$]+/g) ?? [],
  )
  expect(names.length).toBeGreaterThan(2)
  const page = await read(`site/made/reference/${name}.md`)
  const shown = [...page.matchAll(/^### ([\w$]+)/gm)].map(([, one]) => one)
  expect(shown.sort()).toEqual([...names].sort())
})

interface Result {
  readonly id: string
}

/** The index that a browser fetches when somebody searches. */
async function search(words: string): Promise<readonly Result[]> {
  const chunks = `${BUILT}/assets/chunks`
  const [file] = (await readdir(chunks)).filter((name) => name.startsWith('@localSearchIndex'))
  const { default: index } = await import(`${chunks}/${file}`)
  const { default: MiniSearch } = await modules('node_modules/minisearch/dist/es/index.js')
  const { SEARCH } = await modules('.vitepress/search.js')
  const fields = ['title', 'titles', 'text']
  return MiniSearch.loadJSON(index, { fields, storeFields: fields, ...SEARCH.options }).search(
    words,
    SEARCH.searchOptions,
  )
}

it.each([
  ['fastify', '/docs/faq.html#does-it-work-with-fastify-koa-hono-or-nestjs'],
  ['clock skew', '/docs/faq.html#what-about-clock-skew'],
  ['several issuers', '/docs/faq.html#can-a-receiver-accept-several-issuers'],
  ['mock', '/docs/faq.html#how-do-i-mock-it-in-tests'],
  ['how to get a token', '/docs/faq.html#how-does-a-caller-get-a-token'],
  ['429', '/docs/faq.html#is-there-a-rate-limit-and-what-happens-to-a-429'],
  ['end user', '/docs/faq.html#who-is-the-end-user'],
  ['clockToleranceSeconds', '/docs/'],
  ['outcome_unknown', '/docs/operations.html#'],
])('the search for «%s» finds %s among the first three', async (words, place) => {
  const first = (await search(words)).slice(0, 3).map(({ id }) => id)
  expect(first).toContainEqual(expect.stringContaining(place))
})

it('links to the source once package.json has a repository', async () => {
  const { configFor } = await modules('.vitepress/config.js')
  const actionsOf = (manifest: object) => {
    const config = configFor({ name: 'a', description: 'b', ...manifest })
    const page = { relativePath: 'index.md', frontmatter: { hero: { actions: [] } } }
    config.transformPageData(page)
    return [...page.frontmatter.hero.actions, ...config.themeConfig.socialLinks]
  }
  const link = 'https://github.com/who/what'
  expect(actionsOf({})).toEqual([])
  expect(actionsOf({ repository: { url: `git+${link}.git` } })).toMatchObject([{ link }, { link }])
  expect(actionsOf({ repository: 'github:who/what' })).toMatchObject([{ link }, { link }])
})
