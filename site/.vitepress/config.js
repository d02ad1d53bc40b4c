import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'
import { ENTRY_POINTS } from '../entry-points.js'
import { linksToSource, namedCells } from './markdown.js'
import { SEARCH } from './search.js'

const PAGES = fileURLToPath(new URL('../made', import.meta.url))
/** The pages by their files, or as files and names; all others are named by their headings. */
const NAVIGATION = {
  Begin: [
    ['README.md', 'Start'],
    'docs/README.md',
    'docs/faq.md',
    ['docs/control-room.md', 'Try it: the control room'],
    'docs/how-it-decides.md',
    'docs/responses.md',
    'docs/openapi.md',
  ],
  'Receive calls': [
    ...[
      'policy',
      'issuers',
      'bound-tokens',
      'other-frameworks',
      'middleware-order',
      'idempotency',
      'denylist',
      'sessions',
      'testing',
      'commonjs',
      'errors',
    ].map((name) => `docs/${name}.md`),
  ],
  Stores: [
    'docs/stores/redis.md',
    'docs/stores/postgres.md',
    'docs/stores/custom.md',
    'docs/stores/encryption.md',
    'docs/outbox.md',
  ],
  'Call others': ['docs/calling.md'],
  Operate: [
    'docs/operations.md',
    ['docs/operations.md#every-reason', 'Why was a call refused?'],
    ...['logging', 'shutdown', 'opentelemetry', 'capacity', 'cli'].map((name) => `docs/${name}.md`),
    'commands.md',
  ],
  Move: [
    ...[
      'from-express-jwt',
      'from-express-oauth2-jwt-bearer',
      'migration',
      'migration-endpoint',
    ].map((name) => `docs/${name}.md`),
    ...['docs/upgrading.md', 'docs/versioning.md', 'CHANGELOG.md'],
  ],
  'Judge it': [
    'docs/security-model.md',
    'SECURITY.md',
    'docs/proof.md',
    'docs/comparison.md',
    'bench/results.md',
    ['bench/README.md', 'How it is measured'],
  ],
  Reference: [
    ['reference/index.md', 'What can be imported'],
    ...ENTRY_POINTS.map(({ name }) => [`reference/${name}.md`, name]),
  ],
  'How it is built': [
    'docs/architecture.md',
    'CONTRIBUTING.md',
    'CODE_OF_CONDUCT.md',
    'example-app/identity-core/README.md',
    'docs/decisions/index.md',
    ...readdirSync(`${PAGES}/docs/decisions`)
      .filter((file) => file !== 'index.md')
      .map((file) => `docs/decisions/${file}`),
  ],
}

const titleOf = (file) =>
  /^# (.+)$/m.exec(readFileSync(`${PAGES}/${file}`, 'utf8'))[1].replaceAll(/`|\[|\]\(.*?\)/g, '')

const sidebar = Object.entries(NAVIGATION).map(([text, items]) => ({
  text,
  collapsed: items.length > 12,
  items: items.map((item) => {
    const [file, name = titleOf(file)] = [item].flat()
    return { text: name, link: `/${file.replace(/(?:index)?\.md/, '')}` }
  }),
}))

const known = new Set([
  'index.md',
  ...Object.values(NAVIGATION).flatMap((items) => items.map((item) => [item].flat()[0])),
])
const unknown = readdirSync(PAGES, { recursive: true }).filter(
  (file) => file.endsWith('.md') && !known.has(file),
)
if (unknown.length > 0) throw new Error(`not in the navigation: ${unknown.join(', ')}`)

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url)))

/** The address of the source, once `repository` is set in package.json. */
const sourceOf = ({ repository }) =>
  (repository?.url ?? repository)
    ?.replace(/^git\+/, '')
    .replace(/^github:/, 'https://github.com/')
    .replace(/\.git$/, '')

export const configFor = (manifest, source = sourceOf(manifest)) =>
  defineConfig({
    title: manifest.name,
    description: manifest.description,
    lang: 'en',
    base: process.env.SITE_BASE ?? '/',
    srcDir: 'made',
    outDir: 'dist',
    // The index of the search is one file, which is fetched when somebody searches.
    vite: { build: { chunkSizeWarningLimit: 2000 } },
    head: [['link', { rel: 'icon', href: 'data:,' }]],
    markdown: {
      anchor: { slugify: slug },
      config: (md) => md.use(linksToSource({ pages: PAGES, source })).use(namedCells),
    },
    transformPageData({ relativePath, frontmatter }) {
      if (relativePath === 'index.md' && source) {
        frontmatter.hero.actions.push({ theme: 'alt', text: 'Source', link: source })
      }
    },
    themeConfig: {
      sidebar,
      outline: { level: [2, 3] },
      socialLinks: source ? [{ icon: 'github', link: source }] : [],
      search: { provider: 'local', options: { detailedView: false, miniSearch: SEARCH } },
    },
  })

export default configFor(manifest)
