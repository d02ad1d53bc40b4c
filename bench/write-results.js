/* Writes results.md from results.json. */
import { readFileSync, writeFileSync } from 'node:fs'
import { resultsPage } from './markdown.js'

const file = (name) => new URL(name, import.meta.url)

writeFileSync(
  file('results.md'),
  resultsPage(JSON.parse(readFileSync(file('results.json'), 'utf8'))),
)
