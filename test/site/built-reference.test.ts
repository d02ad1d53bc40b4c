import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { entryPointsOf, exportsOf } from '../../site/reference/entry-points.js'
import { ROOT } from '../docs/blocks.js'
import { builtPages } from './serve-site.js'

const read = (path: string): Promise<string> => readFile(`${ROOT}${path}`, 'utf8')
const entries = entryPointsOf(JSON.parse(await read('package.json')))

it.each(entries)('the page of $name has every export that users can import', async (entry) => {
  expect(await builtPages()).toContain(`/reference/${entry.page}.html`)
  const declared = entry.source.replace(/^src\//, 'dist/').replace(/\.ts$/, '.d.ts')
  const [names, page] = [
    exportsOf(await read(declared)),
    await read(`site/made/pages/reference/${entry.page}.md`),
  ]
  expect(names.length).toBeGreaterThan(2)
  const shown = [...page.matchAll(/^### .* \{#([\w$]+)\}$/gm)].map(([, name]) => name)
  expect(shown.sort()).toEqual([...names].sort())
})
