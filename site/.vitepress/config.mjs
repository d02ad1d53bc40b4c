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
            // A name such as outcome_unknown or clockToleranceSeconds stays one word, and each of its
            // parts is one, too.
            tokenize: (text) => {
              const words = text.split(/[^\p{L}\p{N}_]+/u).filter(Boolean)
              return words.flatMap((word) => {
                const parts = word.split(/_|(?<=[a-z0-9])(?=[A-Z])/).filter(Boolean)
                return parts.length > 1 ? [word, ...parts] : [word]
              })
            },
          },
          searchOptions: {
            boost: { title: 4, text: 1, titles: 1 },
            fuzzy: (term) => (term.length > 3 && !term.includes('_') ? 0.2 : false),
            prefix: true,
            combineWith: 'AND',
            // What a reader asks first is what to do; figures and reasons of design come last.
            boostDocument: (id) => {
              if (/\/(?:decisions|reference|benchmarks|changelog)\b/.test(id)) return 0.3
              return /\/(?:answers|containment|policy|operations\/rotations)\b/.test(id) ? 4 : 1
            },
          },
        },
      },
    },
  },
})
