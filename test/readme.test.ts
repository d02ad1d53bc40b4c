import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  createTestCore,
  createTestIssuer,
  type TestCore,
  type TestIssuer,
} from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { masked } from './docs/console.js'
import { readDocument } from './docs/documents.js'
import { blocksOf, codeBlocks, sections } from './docs/markdown.js'
import { type Programs, placeCode, type RunningApp } from './docs/programs.js'
import { freePort, refusingOrigin } from './support/network/free-port.js'
import { type RedisServer, startRedis } from './support/redis/redis.js'
import { until } from './support/until.js'

const README = await readDocument('README.md')
const FIRST = 'express-service-auth'
const OWN_CORE = 'With your own core'
const POLICY_PAGE = await readDocument('docs/policy.md')
const BLOCKS = [
  ...codeBlocks(README),
  ...codeBlocks(POLICY_PAGE).filter(({ heading }) => heading === OWN_CORE),
]
/** The first code of the README, with an issuer of this test, and with one that cannot be reached. */
const ON_FIRST_SCREEN = 'On the first screen'
const WITHOUT_KEYS = 'Without keys'

/** The write that starts a core, as the section on calling says. */
const WITH_CORE = 'A write with a core'

let placed: Programs
let core: TestCore
let corePort: number
let issuer: TestIssuer
let redis: RedisServer
let folder: string

beforeAll(async () => {
  ;[core, issuer, redis, folder] = await Promise.all([
    createTestCore(),
    createTestIssuer(),
    startRedis(),
    mkdtemp(join(tmpdir(), 'readme-')),
  ])
  corePort = await freePort()
  placed = await placeCode('readme', [
    ...BLOCKS,
    { heading: WITH_CORE, code: writeWithCore() },
    { heading: ON_FIRST_SCREEN, code: firstCode(issuer.url) },
    { heading: WITHOUT_KEYS, code: firstCode(await refusingOrigin()) },
  ])
  await writeFile(join(folder, 'policy.json'), JSON.stringify(ownPolicy()))
})

afterAll(async () => {
  const servers = [core.close(), issuer.close(), redis.stop()]
  await Promise.all([placed.remove(), ...servers, rm(folder, { recursive: true })])
})

const codeUnder = (heading: string): string =>
  BLOCKS.find((block) => block.heading === heading)?.code ?? ''

const textUnder = (heading: string): string =>
  sections(README).find((section) => section.heading === heading)?.text ?? ''

function firstCode(issuerUrl: string): string {
  const code = codeUnder(FIRST)
  const changed = code.replace('https://api.example.com', issuerUrl)
  expect(changed).not.toBe(code)
  return changed
}

function writeWithCore(): string {
  const text = textUnder('Calling').replaceAll('\n', ' ')
  const [, core = ''] = /`(const core = await createTestCore\(.*?\))`/.exec(text) ?? []
  const [, policy = ''] = /`(issuer\.policy\(\{.*?\))`/.exec(text) ?? []
  const write = codeUnder('An idempotent write')
  const code = write
    .replace('import { createTestIssuer }', 'import { createTestCore, createTestIssuer }')
    .replace('const auth =', `${core.replace('3567', String(corePort))}\nconst auth =`)
    .replace('issuer.policy()', policy)
  expect(code).toContain(`serviceAuth(${policy})`)
  expect(core).not.toBe('')
  return code
}

/** The policy of its page, with the core of this test. */
function ownPolicy(): object {
  const page = sections(POLICY_PAGE).find(({ heading }) => heading === OWN_CORE)
  const [text = ''] = blocksOf('json', page?.text ?? '')
  const jwksUri = `${core.url}/.well-known/jwks.json`
  return { ...JSON.parse(text), issuer: core.issuer, jwksUri }
}

interface PrintingApp extends RunningApp {
  /** Resolves with so many commands that it has printed, which may go on in further lines. */
  calls(count: number): Promise<readonly string[]>
}

/** Starts a block that prints tokens: into a file, where the search for secrets does not look. */
async function startPrinting(
  heading: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<PrintingApp> {
  const path = join(folder, randomUUID())
  const file = await open(path, 'w')
  const app = await placed.start(heading, { REDIS_URL: redis.url, ...environment }, file.fd)
  await file.close()
  return {
    ...app,
    async calls(count) {
      const read = async (): Promise<readonly string[]> =>
        (await readFile(path, 'utf8')).match(/^curl (?:.*\\\n)*.*'$/gm) ?? []
      await until('the commands are printed', async () => (await read()).length === count)
      return read()
    },
  }
}

async function inShell(command: string): Promise<{ head: readonly string[]; body: string }> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command])
  const [head = '', body = ''] = stdout.split('\r\n\r\n')
  return { head: head.split('\r\n'), body }
}

it('has no code but what is run below', () => {
  expect(BLOCKS.map(({ heading }) => heading)).toEqual([
    FIRST,
    'Quick start',
    'An idempotent write',
    'Calling',
    OWN_CORE,
  ])
})

describe('the first screen', () => {
  const order = (url: string, permissions: readonly string[]) =>
    fetch(`${url}/orders`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({ permissions })}`,
        'content-type': 'application/json',
        'idempotency-key': 'invoice-4711',
      },
      body: JSON.stringify({ item: 'tea' }),
    })

  it('shows the three middlewares in ten lines', () => {
    const lines = codeUnder(FIRST).split('\n').filter(Boolean)
    expect(lines.length).toBeLessThanOrEqual(10)
    for (const name of ['serviceAuth', 'requirePermissions', 'requireIdempotencyKey']) {
      expect(codeUnder(FIRST)).toContain(`${name}(`)
    }
  })

  it('gives what stands below its code', async () => {
    const app = await placed.start(ON_FIRST_SCREEN)
    expect((await fetch(`${app.url}/orders`, { method: 'POST' })).status).toBe(401)
    expect((await order(app.url, ['orders:read'])).status).toBe(403)
    const first = await order(app.url, ['orders:write'])
    expect(first.status).toBe(201)
    expect(await first.json()).toEqual({ item: 'tea', for: 'billing' })
    const again = await order(app.url, ['orders:write'])
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    await app.stop()
  })

  it('answers 503 while there are no keys', async () => {
    const app = await placed.start(WITHOUT_KEYS)
    expect((await order(app.url, ['orders:write'])).status).toBe(503)
    await app.stop()
  })
})

describe('the quick start', () => {
  it('prints a call that gets a 200, one that gets a 401, and the reason', async () => {
    const app = await startPrinting('Quick start')
    const [good = '', bad = ''] = await app.calls(2)
    const [, body] = /gets a 200, `(.*?)`/.exec(textUnder('Quick start')) ?? []
    expect((await inShell(good)).body).toBe(body)

    const [refusal = ''] = blocksOf('http', textUnder('Quick start'))
    const [head = '', problem = ''] = refusal.trim().split('\n\n')
    const answer = await inShell(bad)
    expect(answer.head).toEqual(expect.arrayContaining(head.split('\n')))
    expect(answer.body).toBe(problem)

    const [, logged = ''] = /\n\n```\n(serviceAuth .*?)```/s.exec(textUnder('Quick start')) ?? []
    expect(logged).toContain('claim_invalid')
    await until('the reason is logged', async () => app.complaints().includes('claim_invalid.'))
    expect(masked(app.complaints())).toContain(masked(logged))
    await app.stop()
  })
})

describe('with a core', () => {
  it('fetches its keys', async () => {
    const printed = await placed.run(OWN_CORE, {}, folder)
    expect(printed).toContain("state: 'fresh'")
  })

  it('calls the write, the second time with the same result', async () => {
    const app = await startPrinting(WITH_CORE)
    const environment = { CORE_URL: `http://127.0.0.1:${corePort}`, ORDERS_URL: app.url }
    expect(await placed.run('Calling', environment)).toBe('201 new\n')
    expect(await placed.run('Calling', environment)).toBe('201 replayed\n')
    await app.stop()
  })

  it('ends within five seconds if there is none, and says so', async () => {
    const nowhere = await refusingOrigin()
    const complaint = (heading: string, environment: NodeJS.ProcessEnv, cwd?: string) =>
      placed.run(heading, environment, cwd).catch(({ stderr }) => stderr)
    const startedAt = performance.now()
    expect(await complaint('Calling', { CORE_URL: nowhere })).toContain(
      'TokenSourceError: no service token: core_unreachable, ECONNREFUSED',
    )
    expect(performance.now() - startedAt).toBeLessThan(5000)
    const elsewhere = await mkdtemp(join(folder, 'no-core-'))
    const jwksUri = `${nowhere}/jwks.json`
    await writeFile(join(elsewhere, 'policy.json'), JSON.stringify({ ...ownPolicy(), jwksUri }))
    expect(await complaint(OWN_CORE, {}, elsewhere)).toBe(
      `the key set at ${jwksUri} could not be fetched (reason: network, ECONNREFUSED)\n`,
    )
  })
})

describe('the idempotent write', () => {
  it('is replayed, also after its process was killed', async () => {
    const app = await startPrinting('An idempotent write')
    const [call = ''] = await app.calls(1)
    const first = await inShell(call)
    expect(first.head[0]).toBe('HTTP/1.1 201 Created')
    const again = await inShell(call)
    expect(again.head).toContain('Idempotent-Replayed: true')
    expect(again.body).toBe(first.body)
    expect((await inShell(call.replace('tea', 'coffee'))).head[0]).toContain(' 422 ')
    await app.stop('SIGKILL')

    const restarted = await startPrinting('An idempotent write')
    const [later = ''] = await restarted.calls(1)
    const replay = await inShell(later)
    expect(replay.head).toContain('Idempotent-Replayed: true')
    expect(replay.body).toBe(first.body)
    await restarted.stop()
  })

  it('is not repeated after its process was killed in the middle', async () => {
    const callOf = async (app: PrintingApp): Promise<string> =>
      ((await app.calls(1))[0] ?? '').replace('invoice-4711', 'invoice-4712')
    const app = await startPrinting('An idempotent write', { PAUSE_MS: '20000' })
    await redis.command('FLUSHALL')
    const call = inShell(await callOf(app)).catch(({ stderr }) => stderr)
    await until('the key is reserved', async () => (await redis.command('DBSIZE')) !== '0')
    await app.stop('SIGKILL')
    expect(await call).toContain('Empty reply from server')

    const restarted = await startPrinting('An idempotent write')
    const retry = await inShell(await callOf(restarted))
    expect(retry.head).toContain('HTTP/1.1 409 Conflict')
    expect(retry.head).toContainEqual(expect.stringMatching(/^Retry-After: ([12]?\d|30)$/))
    expect(retry.body).toContain('request-in-progress')
    await restarted.stop()
  })
})
