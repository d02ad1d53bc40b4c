import { execFile } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../../example-app/listen.js'
import { compileCommand } from '../cli/kit.js'
import { freePort } from '../support/network/free-port.js'
import { startRedis } from '../support/redis/redis.js'
import { run } from './run.js'

/** What `npx service-auth` runs once the project is built. */
const SERVICE_AUTH = `node ${await compileCommand()}`

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
  const taken = await listen(() => {}, 0)
  onTestFinished(taken.close)
  const env = { CONTROL_ROOM_PORT: new URL(taken.url).port }
  const { code, stdout, stderr } = await (await run('start.ts', ['--once'], env)).finished
  // A page would complain of its port.
  expect(stderr).toBe('')
  expect(stepsOf(stdout)).toEqual(STEPS.map((step) => [...step]))
  expect(stdout).toContain('17 of 17 steps went as expected')
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

it('stays up with curl lines that work as printed, and leaves nothing behind', async () => {
  const roomPort = await freePort()
  const env = { CONTROL_ROOM_PORT: String(roomPort) }
  const story = await run('start.ts', ['--no-page'], env)
  onTestFinished(() => {
    story.child.kill('SIGKILL')
  })
  const stdout = await story.printed('/invoices/try-')
  const [, ...blocks] = stdout.slice(stdout.indexOf('To try:')).split('\n\n')
  const [define, read, create, bill] = blocks.map((block) => block.slice(block.indexOf('\n') + 1))
  const script = [define, read, create, create, bill].join('\n')
  const { stdout: answers } = await promisify(execFile)('sh', ['-c', script])

  expect(answers.match(/^HTTP\/1\.1 \d+/gm)).toEqual(
    [200, 201, 201, 200].map((s) => `HTTP/1.1 ${s}`),
  )
  expect(answers.match(/idempotent-replayed: true/gi)).toHaveLength(1)

  const config = /-K '(.+?)'/.exec(stdout)?.[1] ?? ''
  expect((await stat(config)).mode & 0o777).toBe(0o600)
  expect(stdout).not.toContain('example-key')
  await expect(fetch(`http://127.0.0.1:${roomPort}/`)).rejects.toThrow('fetch failed')
  story.child.kill('SIGTERM')
  const { code, stdout: all } = await story.finished
  expect(code).toBe(0)
  expect(all).not.toContain('in a browser')
  expect(await readdir(tmpdir())).not.toContain(join(dirname(config)).split('/').at(-1))
})

it('shows with Redis what its operator can do, in commands that work', async () => {
  const redis = await startRedis()
  onTestFinished(() => redis.stop())
  const story = await run('start.ts', ['--no-page'], { REDIS_URL: redis.url })
  onTestFinished(() => {
    story.child.kill('SIGKILL')
  })
  const stdout = await story.printed('What the receiver logs:')
  const [, ...blocks] = stdout.slice(stdout.indexOf('To try:')).split('\n\n')
  const commandOf = (block = ''): string => block.slice(block.indexOf('\n') + 1)
  const [define, , , , glass] = blocks.map(commandOf)
  const commands = commandOf(blocks.at(-2)).split('\n')
  const [, doctor] = commands
  const probe = commands.find((line) => line.endsWith('/readyz')) ?? 'no probe'
  const inShell = (script: string) =>
    promisify(execFile)('sh', ['-c', script.replaceAll('npx service-auth', SERVICE_AUTH)], {
      env: { ...process.env, REDIS_URL: redis.url },
    })

  expect((await inShell(`${define}\n${doctor}`)).stdout).toContain('Token accepted')
  expect(JSON.parse((await inShell(probe)).stdout)).toMatchObject({
    phase: 'ready',
    denylists: [{ state: 'fresh' }],
    store: { state: 'up' },
  })
  const { stdout: answers } = await inShell(`${define}\n${glass}\n${glass}`)
  expect(answers).toContain('HTTP/1.1 409')
  const [, record] =
    /"outcome_unknown".*"record":"(.+?)"/.exec(await story.printed('"outcome_unknown"')) ?? []
  expect((await inShell(`npx service-auth settle -- ${record}`)).stdout).toContain('abandoned')
  story.child.kill('SIGTERM')
  expect((await story.finished).code).toBe(0)
})
