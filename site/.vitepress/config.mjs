import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

const navigation = JSON.parse(readFileSync(new URL('../made/navigation.json', import.meta.url)))

export default defineConfig({
  title: 'express-service-auth',
  description: 'Express middleware by which one backend service trusts a call from another.',
  lang: 'en',
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'made/pages',
  outDir: 'dist',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    // The generator gives each heading its anchor; those that it does not know are made as GitHub does.
    anchor: {
      slugify: (title) =>
        title
          .toLowerCase()
          .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
          .replaceAll(' ', '-'),
    },
    toc: { level: [2, 3] },
  },
  themeConfig: {
    sidebar: navigation.map((group) => ({ ...group, collapsed: group.items.length > 12 })),
    outline: { level: [2, 3] },
    externalLinkIcon: false,
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
