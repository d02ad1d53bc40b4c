import { writeFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { linesOf, userNamed } from '../cli/migrate/migrate-kit.js'
import { startStandInCore } from '../support/core/stand-in-core.js'
import { readDocument } from './documents.js'
import { codeBlocks } from './markdown.js'
import { placeCode } from './programs.js'

it('runs the program of the page on a migration, to its end', async () => {
  const core = await startStandInCore({ job: { intervalMs: 50 } })
  // The core is another one here, and nobody waits a quarter of a minute for its next count.
  const here = (await readDocument('docs/migration.md'))
    .replaceAll('https://core.internal', core.url)
    .replace("source: { file: 'users.ndjson' }", '$&, pollSeconds: 1')
  const placed = await placeCode('from-code', codeBlocks(here))
  await writeFile(`${placed.folder}/users.ndjson`, linesOf(userNamed('ann')), { mode: 0o600 })
  const printed = await placed.run('From code', { CORE_API_KEY: core.apiKey })
  await Promise.all([core.close(), placed.remove()])
  expect(printed).toMatch(/^ann [\w-]{36}$/m)
})
