import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../../example-app/listen.js'
import { removeTemporaryFolder, temporaryFolder } from '../../example-app/temporary-folder.js'
import { databaseFolder, removeDatabaseFolder } from '../support/core/stand-in-core.js'
import { run } from './run.js'

const PREFIX = 'migration-story-'

async function startStory() {
  const database = await databaseFolder()
  onTestFinished(() => removeDatabaseFolder(database))
  const story = await run('start.ts', ['migration'], { IDENTITY_CORE_DATABASE: database })
  onTestFinished(() => {
    story.child.kill('SIGKILL')
  })
  const file = /^source +(.+)$/m.exec(await story.printed('users.ndjson\n'))?.[1] ?? ''
  return { child: story.child, folder: dirname(file) }
}

it('of a killed story goes at the next start, and no other', async () => {
  const [killed, alive, unmarked] = await Promise.all([
    startStory(),
    startStory(),
    mkdtemp(join(tmpdir(), PREFIX)),
  ])
  onTestFinished(() => rm(unmarked, { recursive: true }))
  killed.child.kill('SIGKILL')
  await once(killed.child, 'exit')
  expect(existsSync(killed.folder)).toBe(true)

  const next = await temporaryFolder(PREFIX)
  expect([killed.folder, alive.folder, unmarked].map(existsSync)).toEqual([false, true, true])

  // Also one that is stopped, and so answers nobody.
  alive.child.kill('SIGSTOP')
  await removeTemporaryFolder(next)
  await removeTemporaryFolder(await temporaryFolder(PREFIX))
  expect([alive.folder, next].map(existsSync)).toEqual([true, false])
  alive.child.kill('SIGKILL')
  await once(alive.child, 'exit')
  await removeTemporaryFolder(await temporaryFolder(PREFIX))
  expect(existsSync(alive.folder)).toBe(false)
})

it('goes when the story cannot start', async () => {
  const taken = await listen(() => {}, 0)
  onTestFinished(taken.close)
  const home = await mkdtemp(join(tmpdir(), 'esa-home-'))
  onTestFinished(() => rm(home, { recursive: true }))
  const env = { TMPDIR: home, IDENTITY_CORE_PORT: new URL(taken.url).port }
  const { code, stderr } = await (await run('start.ts', ['migration'], env)).finished
  expect([code, stderr]).toEqual([1, expect.stringContaining('is in use')])
  expect((await readdir(home)).filter((name) => name.startsWith(PREFIX))).toEqual([])
})
