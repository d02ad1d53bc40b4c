import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { MadePage } from '../make/made-page.js'
import { benchmarksPage } from './benchmarks-page.js'

const BENCH = fileURLToPath(new URL('../../bench/', import.meta.url))

/** The page of figures, made of those that were committed last. */
export async function madePages(): Promise<readonly MadePage[]> {
  const [results, method] = await Promise.all(
    ['results.json', 'README.md'].map((name) => readFile(`${BENCH}${name}`, 'utf8')),
  )
  const text = benchmarksPage(JSON.parse(results ?? ''), method ?? '')
  const standsFor = ['bench/README.md', 'bench/results.md']
  return [{ path: 'benchmarks', title: 'Benchmarks', group: 'Judge it', text, standsFor }]
}
