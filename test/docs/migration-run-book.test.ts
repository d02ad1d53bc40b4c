import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { coreClient } from '../../src/migration/core/open-core-client.js'
import { linesOf, runUntilStalled, userNamed } from '../cli/migrate/migrate-kit.js'
import { askCore } from '../support/core/core-client.js'
import { type StandInCore, startStandInCore } from '../support/core/stand-in-core.js'
import { exchangesIn, expectShown, inShell, logLinesIn, placeCommand } from './console.js'
import { readDocument } from './documents.js'
import { sections } from './markdown.js'

const runBook = await readDocument('docs/migration.md')

interface Place {
  readonly core: StandInCore
  readonly folder: string
}

let migration: Place
let stalled: Place

async function placeWith(core: StandInCore): Promise<Place> {
  const folder = await placeCommand()
  await writeFile(join(folder, 'core.key'), core.apiKey, { mode: 0o600 })
  return { core, folder }
}

/** A core whose job is off, and a run into it that has stalled. */
async function stalledPlace(): Promise<Place> {
  const place = await placeWith(await startStandInCore())
  const source = join(place.folder, 'users.ndjson')
  await writeFile(source, linesOf(...['gil', 'hal', 'ida'].map(userNamed)), { mode: 0o600 })
  await runUntilStalled(place.core, { source, journal: join(place.folder, 'journal') })
  return place
}

beforeAll(async () => {
  const core = await startStandInCore({ job: { intervalMs: 50 } })
  // Somebody who signed up in the core before the migration.
  await coreClient({ baseUrl: core.url, apiKey: core.apiKey }).importUser({
    externalUserId: 'early-1',
    loginMethods: [{ recipeId: 'passwordless', email: 'eve@example.com' }],
  })
  migration = await placeWith(core)
  stalled = await stalledPlace()
})
afterAll(() =>
  Promise.all(
    [migration, stalled].map(async ({ core, folder }) => {
      await core.close()
      await rm(folder, { recursive: true, force: true })
    }),
  ),
)

/** What has happened before somebody goes on with the next command. */
const MEANWHILE: Readonly<Record<string, () => Promise<unknown>>> = {
  'Check, command 2': () =>
    askCore(migration.core, '/recipe/role', { role: 'editor', permissions: [] }, 'PUT'),
  'Unblock, command 2': async () => {
    const { url, apiKey } = stalled.core
    const client = coreClient({ baseUrl: url, apiKey })
    await client.importUser({ ...userNamed('gil'), externalUserId: 'early-2' })
    await client.importUser(userNamed('hal'))
  },
}

const FILES: Readonly<Record<string, string>> = {
  'Before you begin': 'users.ndjson',
  Correct: 'fix.ndjson',
}

it('prints what the run-book says, from its first command to its last', async () => {
  for (const { heading, text } of sections(runBook)) {
    const { core, folder } = heading === 'Unblock' ? stalled : migration
    const files = '--api-key-file core.key --source users.ndjson --journal journal'
    const environment = { M: `--core ${core.url} ${files} --poll-seconds 1` }
    const file = FILES[heading]
    if (file !== undefined) {
      const lines = logLinesIn(text).join('\n')
      await writeFile(join(folder, file), `${lines}\n`, { mode: 0o600 })
    }
    for (const [index, exchange] of exchangesIn(text).entries()) {
      await MEANWHILE[`${heading}, command ${index + 1}`]?.()
      const printed = await inShell(exchange.command, folder, environment)
      expectShown(exchange, printed.replaceAll(folder, '/srv/migration'))
    }
  }
}, 180_000)

it('has a heading for whatever this test does', () => {
  const headings = sections(runBook).map(({ heading }) => heading)
  const named = Object.keys(MEANWHILE).map((place) => place.split(',')[0])
  expect(headings).toEqual(expect.arrayContaining([...Object.keys(FILES), ...named]))
})
