import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { startStandInCore } from '../support/core/stand-in-core.js'
import { compile } from '../support/process/compile.js'
import { placeCode, readDocument } from './blocks.js'
import { codeBlocks } from './markdown.js'

const USER = {
  externalUserId: 'ann',
  loginMethods: [{ recipeId: 'passwordless', email: 'ann@example.com' }],
}

it('runs the program of the page on a migration, to its end', async () => {
  const [core, folder, document] = await Promise.all([
    startStandInCore({ job: { intervalMs: 50 } }),
    mkdtemp(join(tmpdir(), 'from-code-')),
    readDocument('docs/migration.md'),
  ])
  await writeFile(join(folder, 'users.ndjson'), `${JSON.stringify(USER)}\n`)
  // The core is another one here, and nobody waits a quarter of a minute for its next count.
  const here = document
    .replaceAll('https://core.internal', core.url)
    .replace("journal: await fileJournal('journal'),", '$& pollSeconds: 1,')
  const placed = await placeCode('from-code', codeBlocks(here))
  const program = await compile(pathToFileURL(placed.fileOf('From code')))
  const env = { ...process.env, CORE_API_KEY: core.apiKey }
  const { stdout } = await promisify(execFile)(process.execPath, [program], { cwd: folder, env })
  await Promise.all([core.close(), placed.remove(), rm(folder, { recursive: true })])
  expect(stdout).toMatch(/^ann reconciled \S+$/m)
})
