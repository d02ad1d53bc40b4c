import { expect, it, onTestFinished } from 'vitest'
import { placeBlocks } from '../docs/programs.js'
import { startRedis } from '../support/redis/redis.js'
import { run } from './run.js'

/** Whole stories, which start servers. */
const LONG = { timeout: 180_000 }

const STEPS = [
  ['accepted read', 200],
  ['accepted write', 201],
  ['identical retry, from store', 201],
  ['key reused with another body', 422],
  ['replayed token', 401],
  ['answer lost, billing retries', 200],
  ['endpoint for both, a service', 200],
  ['endpoint for both, a user', 200],
  ['endpoint for both, two at once', 401],
  ['missing permission', 403],
  ['unapproved caller', 403],
  ['tampered token', 401],
  ['wrong audience', 401],
  ['rotation in mid-flight', 200],
  ['old key after the rotation', 200],
  ['key set down', 200],
  ['key set down, fresh receiver', 503],
] as const

/** Lines of the story that went as expected: title and status. */
function stepsOf(stdout: string): [string, number][] {
  const row = /^ok {2,}(.+?) {2,}.+? {2,}(\d{3}) /
  return stdout.split('\n').flatMap((line) => {
    const [, title, status] = row.exec(line) ?? []
    return title === undefined ? [] : [[title, Number(status)]]
  })
}

it('goes as expected from the first step to the last, and ends with exit code 0', async () => {
  const { code, stdout, stderr } = await (await run('start.ts', ['--once'])).finished
  expect(stderr).toBe('')
  expect(stepsOf(stdout)).toEqual(STEPS.map((step) => [...step]))
  expect(stdout).toContain('17 of 17 steps went as expected')
  expect(stdout).toContain('so it may read.')
  expect(stdout).not.toContain('\u001b')
  expect(stdout).not.toContain('eyJ')
  expect(code).toBe(0)
})

it('goes as expected with Redis, also a second time on the same records', LONG, async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  for (const _ of ['once', 'again']) {
    const story = await run('start.ts', ['--once'], { REDIS_URL: redis.url })
    const { code, stdout, stderr } = await story.finished
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(`store: Redis at 127.0.0.1:${redis.port}`)
    expect(stepsOf(stdout)).toHaveLength(STEPS.length)
  }
})

it('stays up for the client of the README, without a page, until Ctrl-C', async () => {
  const placed = await placeBlocks('story', 'README.md')
  onTestFinished(placed.remove)
  const story = await run('start.ts', ['--no-page'])
  onTestFinished(() => void story.child.kill('SIGKILL'))
  const printed = await story.printed('The services stay up')
  const addressOf = (name: string) => new RegExp(`^${name} +(\\S+)`, 'm').exec(printed)?.[1]
  const environment = { CORE_URL: addressOf('core'), ORDERS_URL: addressOf('orders') }
  expect(await placed.run('Calling', environment)).toBe('201 new\n')
  expect(await placed.run('Calling', environment)).toBe('201 replayed\n')
  story.child.kill('SIGINT')
  const { code, stdout, stderr } = await story.finished
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).not.toContain('in a browser')
  expect(stdout).not.toContain('key_set_fetched')
})
