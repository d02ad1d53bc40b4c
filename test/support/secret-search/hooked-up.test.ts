import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const TESTS = fileURLToPath(new URL('../..', import.meta.url))
/** Code that passes events to a logger or an exporter, which the search does not see by itself. */
const HIDDEN_SINK = /from '(?:pino|@opentelemetry\/sdk-[a-z-]+)'|\blogDecisions\(/
/** Code that makes the search see it; `telemetry.ts` does so for its users. */
const IS_SEARCHED =
  /\b(?:searchedLogger|searchedExporter|recordOutput)\(|support\/observe\/telemetry\.js'/

it('sees what each test gives to a logger or an exporter', async () => {
  const unseen: string[] = []
  let seen = 0
  for (const name of await readdir(TESTS, { recursive: true })) {
    if (!name.endsWith('.test.ts') || join(TESTS, name) === import.meta.filename) continue
    const text = await readFile(join(TESTS, name), 'utf8')
    if (!HIDDEN_SINK.test(text)) continue
    if (IS_SEARCHED.test(text)) seen += 1
    else unseen.push(name)
  }
  expect(unseen).toEqual([])
  expect(seen).toBeGreaterThan(0)
})
