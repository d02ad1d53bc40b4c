import { expect, it, onTestFinished } from 'vitest'
import { databaseFolder, removeDatabaseFolder } from '../support/core/stand-in-core.js'
import { run } from './run.js'

const STEPS = [
  'the preflight finds that a role is missing',
  'four users in two calls, one reply is lost',
  'two are not sent, each with a reason',
  'no row waits, and that is not complete',
  'a person corrects one and leaves one out',
  'each identity is looked up once more',
  'somebody signs up in the older service',
  'the same request again',
  'with a wrong token',
  'a core whose database is in memory',
]

async function freshDatabase(): Promise<{ IDENTITY_CORE_DATABASE: string }> {
  const folder = await databaseFolder()
  onTestFinished(() => removeDatabaseFolder(folder))
  return { IDENTITY_CORE_DATABASE: folder }
}

it('goes as expected from the first step to the last, and ends with exit code 0', async () => {
  const story = await run('start.ts', ['migration', '--once'], await freshDatabase())
  const { code, stdout, stderr } = await story.finished
  expect(stderr).toBe('')
  const titles = stdout.split('\n').flatMap((line) => /^ok {2}(.+?) {2}/.exec(line)?.[1] ?? [])
  expect(titles).toEqual(STEPS)
  expect(stdout).toContain('10 of 10 steps went as expected')
  expect(stdout).not.toContain('\u001b')
  expect(code).toBe(0)
})
