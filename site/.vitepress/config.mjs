import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url)))
const { name, description } = read('../../package.json')
const navigation = read('../made/navigation.json')

export default defineConfig({
  title: name,
  description,
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'made/pages',
  outDir: 'dist',
  // The index of the search is one file, which is fetched when somebody searches.
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  themeConfig: {
    sidebar: navigation.map((group) => ({ ...group, collapsed: group.items.length > 12 })),
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: {
        detailedView: false,
        miniSearch: {
          options: {
            // A name such as outcome_unknown stays one word, and each of its parts is one, too.
            tokenize: (text) => {
              const words = text.split(/[^\p{L}\p{N}_]+/u).filter(Boolean)
              return words.flatMap((word) =>
                word.includes('_') ? [word, ...word.split('_').filter(Boolean)] : [word],
              )
            },
          },
          searchOptions: {
            boost: { title: 4, text: 1, titles: 1 },
            fuzzy: (term) => (term.length > 3 && !term.includes('_') ? 0.2 : false),
            prefix: true,
            combineWith: 'AND',
          },
        },
      },
    },
  },
})
