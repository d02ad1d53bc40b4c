import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { blocksOf, codeBlocks } from '../docs/markdown.js'
import { FREE_PORTS } from '../example-app/run.js'
import { freePort } from '../support/network/free-port.js'
import { until } from '../support/until.js'
import { copySources, ROOT, runIn } from './pack.js'

const README = await readFile(join(ROOT, 'README.md'), 'utf8')
const BLOCKS = codeBlocks(README)
const QUICK_START = BLOCKS.find(({ heading }) => heading === 'Quick start')?.code ?? ''
const [TRY = '', INSTALL = ''] = blocksOf('sh', README)

/** `npm ci`, and what follows it. */
const LONG = 600_000

/** A user who owns nothing on this machine; only root can become another one. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

let place: string
let clone: string
let app: string

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'readme-'))
  clone = join(place, 'clone')
  app = join(place, 'app')
  await copySources(clone)
  if (NOBODY.uid === undefined) return
  await chmod(place, 0o755)
  await runIn(place, ['chown', '-R', `${NOBODY.uid}:${NOBODY.gid}`, place])
})

afterAll(() => rm(place, { recursive: true, force: true }))

/** Runs lines of the README in the clone, as somebody else if that is possible. */
function asNobody(script: string) {
  const { VITEST: _, NODE_ENV: __, NODE_OPTIONS: ___, TMPDIR: ____, ...inherited } = process.env
  const env = { ...inherited, ...FREE_PORTS, HOME: place, npm_config_cache: join(place, '.npm') }
  const child = spawn('sh', ['-euc', script], { cwd: clone, env, detached: true, ...NOBODY })
  const closed = once(child, 'close')
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text
    })
  }
  return {
    printed: () => printed,
    async shows(text: string): Promise<void> {
      while (!printed.includes(text)) {
        const ended = await Promise.race([delay(100), closed])
        if (ended !== undefined) throw new Error(`ended: ${printed}`)
      }
    },
    async succeeds(): Promise<void> {
      const [code] = await closed
      expect(code, printed).toBe(0)
    },
    async interrupt(): Promise<void> {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGINT')
      await closed
    },
  }
}

/** Runs the quick start as a file of the app, and resolves with the statuses of its calls. */
async function statusesOf(file: string): Promise<readonly string[]> {
  await writeFile(join(app, file), QUICK_START)
  // It prints tokens on purpose, where the search for secrets does not look.
  const path = join(app, 'printed.txt')
  const printed = await open(path, 'w')
  const env = { ...process.env, PORT: String(await freePort()) }
  const stdio = ['ignore', printed.fd, 'ignore'] as const
  const server = spawn(process.execPath, [file], { cwd: app, env, stdio: [...stdio] })
  await printed.close()
  const calls = async (): Promise<readonly string[]> =>
    (await readFile(path, 'utf8')).match(/^curl .*$/gm) ?? []
  await until(`${file} prints its calls`, async () => (await calls()).length === 2)
  const heads = []
  for (const call of await calls()) {
    const { stdout } = await promisify(execFile)('sh', ['-c', call])
    heads.push(stdout.split('\r\n')[0] ?? '')
  }
  server.kill()
  await once(server, 'exit')
  return heads
}

it('has each command once', () => {
  const lines = [...TRY.trim().split('\n'), ...INSTALL.trim().split('\n')]
  const commands = lines.map((line) => line.replace(/ *#.*$/, ''))
  expect(new Set(commands).size).toBe(commands.length)
  expect(commands.slice(0, 2)).toEqual(['npm ci && npm start', 'npm ci && npm test'])
  for (const command of commands) expect(README.split(`\n${command}`)).toHaveLength(2)
})

it('starts the example in a fresh clone', { timeout: LONG }, async () => {
  const [start = ''] = TRY.split('\n')
  const [, calls] = /explains (\d+) calls/.exec(start) ?? []
  const running = asNobody(start)
  // Before anything is imported: that takes seconds.
  await running.shows(`\nStarts three services and explains ${calls} calls.\n`)
  await running.shows('See it in a browser')
  await running.interrupt()
  expect(running.printed()).toContain(`${calls} of ${calls} steps went as expected`)
})

it('runs the tests in a fresh clone', { timeout: LONG }, async () => {
  const [, test = ''] = TRY.trim().split('\n')
  // `npm start` above has installed what it needs.
  const [, command = ''] = /^npm ci && (npm test)\b/.exec(test) ?? []
  // All of them take minutes; these start a Redis and a Postgres.
  const some = ['test/stores/redis/health.test.ts', 'test/stores/postgres/sweep.test.ts']
  await asNobody(`${command} -- ${some.join(' ')}`).succeeds()
})

it('is packed and installed into an app, where the quick start runs', {
  timeout: LONG,
}, async () => {
  await asNobody(INSTALL).succeeds()
  const statuses = ['HTTP/1.1 200 OK', 'HTTP/1.1 401 Unauthorized']
  expect(await statusesOf('server.js')).toEqual(statuses)
  await runIn(app, ['npm', 'pkg', 'set', 'type=commonjs'])
  expect(await statusesOf('server.mjs')).toEqual(statuses)
})
