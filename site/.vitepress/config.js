import { readdirSync, readFileSync } from 'node:fs'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'

/** The documents of the repository are the pages as they are: `site/build.js` copies them. */
const PAGES = new URL('../made/', import.meta.url)
const read = (path) => readFileSync(new URL(path, PAGES), 'utf8')
const { name, description } = JSON.parse(read('../../package.json'))

const titleOf = (page) => /^# (.+)$/m.exec(read(page))[1].replaceAll(/`|\\/g, '')
const linkTo = (page, text = titleOf(page)) => ({
  text,
  link: `/${page.replace(/(index|README)?\.md$/, '')}`,
})

/** The table of `docs/README.md` is the navigation: a topic in each row, its pages as links. */
const topics = [...read('docs/README.md').matchAll(/^\| (\w[^|]+) \| (\[.+) \|$/gm)]
const sidebar = topics.map(([, text, links]) => ({
  text,
  items: [...links.matchAll(/\[([^\]]+)\]\(([\w/-]+\.md)\)/g)].map(([, label, file]) =>
    linkTo(`docs/${file}`, label.replaceAll('`', '')),
  ),
}))
const decisions = readdirSync(new URL('docs/decisions', PAGES)).map((file) =>
  linkTo(`docs/decisions/${file}`),
)
const modules = readdirSync(new URL('reference', PAGES), { recursive: true })
  .filter((file) => file.endsWith('index.md'))
  .map((file) => linkTo(`reference/${file}`))

export default defineConfig({
  title: name,
  description,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'made',
  outDir: 'dist',
  rewrites: { 'README.md': 'index.md', 'docs/README.md': 'docs/index.md' },
  // The anchors of GitHub, which the links of the documents name.
  markdown: { anchor: { slugify: slug } },
  // Links to folders and to files of the source, which are no pages.
  ignoreDeadLinks: [/\/(api|src|test|scripts|bench|example-app)(\/|$)/, /decisions\/?$/],
  themeConfig: {
    sidebar: [
      { text: 'Start', items: [linkTo('README.md', 'README'), linkTo('docs/README.md')] },
      ...sidebar,
      { text: 'Decisions', collapsed: true, items: decisions },
      { text: 'Reference', items: modules },
    ],
    outline: [2, 3],
    search: { provider: 'local' },
  },
})
