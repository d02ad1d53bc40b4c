import { chmod, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startTcpProxy } from '../../support/network/tcp-proxy.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { startCluster } from '../../support/redis/redis-cluster.js'
import { startReplica } from '../../support/redis/redis-replica.js'
import { startSentinel } from '../../support/redis/redis-sentinel.js'
import { runChild, runHere, temporaryFile, temporaryFolder } from '../kit.js'

const PASSWORD = 'hunter2hunter2hunter2'

let redis: RedisServer
/** With a password; `default` needs it too. */
let closed: RedisServer

beforeAll(async () => {
  ;[redis, closed] = await Promise.all([
    startRedis({ config: { appendonly: 'yes' } }),
    startRedis({ config: { appendonly: 'yes', requirepass: PASSWORD } }),
  ])
})

afterAll(() => Promise.all([redis.stop(), closed.stop()]))

interface Checked {
  readonly url?: string
  /** The client that the module of `--redis` makes, of `Redis`, `Cluster`, `Valkey`, `createClient` and `createCluster`. */
  readonly client?: string
  readonly options?: readonly string[]
}

interface Found {
  readonly code: string
  readonly message: string
}

interface Node {
  readonly address: string
  readonly faults: readonly Found[]
  readonly warnings: readonly Found[]
  readonly facts: readonly Found[]
}

const addressOf = (library: string): string =>
  JSON.stringify(pathToFileURL(createRequire(import.meta.url).resolve(library)).href)

/** The path of a module with this text, which has the functions of every client library. */
async function moduleFile(text: string, name = 'redis.mjs'): Promise<string> {
  const path = join(await temporaryFolder(), name)
  const imports = [
    `import ioredis from ${addressOf('ioredis')}`,
    `import iovalkey from ${addressOf('iovalkey')}`,
    `import nodeRedis from ${addressOf('redis')}`,
    'const { Redis, Cluster } = ioredis',
    'const { Redis: Valkey } = iovalkey',
    'const { createClient, createCluster } = nodeRedis',
  ]
  await writeFile(path, [...imports, text].join('\n'), { mode: 0o644 })
  return path
}

async function check({ url, client, options = [] }: Checked) {
  const place = client && ['--redis', await moduleFile(`export default ${client}`)]
  const argv = ['check-store', ...(place ?? []), ...options]
  const env = url === undefined ? {} : { REDIS_URL: url }
  const [ran, asJson] = await Promise.all([
    runHere(argv, { env }),
    runHere([...argv, '--json'], { env }),
  ])
  expect(asJson.exitCode).toBe(ran.exitCode)
  expect(ran.stdout + ran.stderr + asJson.stdout + asJson.stderr).not.toContain('hunter2')
  const object = asJson.json()
  return { ...ran, object, nodes: (object['nodes'] ?? []) as Node[] }
}

const codesOf = (findings: readonly Found[] | undefined) => findings?.map(({ code }) => code)

describe('a store that is fit', () => {
  it('is shown, and ends with 0', async () => {
    const { exitCode, stdout, stderr, object, nodes } = await check({ url: redis.url })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(object).toMatchObject({ command: 'check-store', ok: true })
    const facts = ['version', 'persistence', 'replicas', 'memory', 'latency', 'clock']
    expect(nodes.map((node) => [node.address, codesOf(node.facts)])).toEqual([
      [`127.0.0.1:${redis.port}`, facts],
    ])
    expect(nodes[0]).toMatchObject({ faults: [], warnings: [] })
    expect(stdout.replaceAll(/\d+(\.\d+)*/g, 'N')).toBe(
      [
        'N:N',
        '  version      Redis N, standalone',
        '  persistence  AOF on (fsync everysec), RDB off',
        '  replicas     N connected, min-replicas-to-write N',
        '  memory       N MiB used, no maxmemory, noeviction',
        '  latency      median N ms, maximum N ms of N PINGs',
        '  clock        agrees with this machine',
        '',
      ].join('\n'),
    )
  })

  it.each<[string, () => Checked]>([
    ['REDIS_URL', () => ({ url: `redis://:${PASSWORD}@127.0.0.1:${closed.port}` })],
    [
      'a client of ioredis rather than REDIS_URL',
      () => ({
        url: 'redis://127.0.0.1:1',
        client: `new Redis({ port: ${closed.port}, password: '${PASSWORD}' })`,
      }),
    ],
    [
      'a client of iovalkey',
      () => ({ client: `new Valkey({ port: ${closed.port}, password: '${PASSWORD}' })` }),
    ],
    [
      'a client of node-redis',
      () => ({ client: `createClient({ url: '${closed.url}', password: '${PASSWORD}' })` }),
    ],
    [
      'one that is connected',
      () => ({ client: `await createClient({ url: '${redis.url}' }).connect()` }),
    ],
  ])('is found by %s', async (_what, checked) => {
    const { exitCode, nodes } = await check(checked())
    expect({ exitCode, nodes: nodes.length }).toEqual({ exitCode: 0, nodes: 1 })
  })

  it('is found by a module in the working directory, whose client ends with the process', async () => {
    const client = `new Redis({ port: ${closed.port}, password: '${PASSWORD}' })`
    const path = await moduleFile(`export default ${client}`)
    const argv = ['check-store', '--json', '--redis', relative(process.cwd(), path)]
    const ran = await runChild(argv, { stdin: '' })
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  })

  it('is no child process that has to be ended', async () => {
    const ran = await runChild(['check-store', '--json'], {
      env: { REDIS_URL: redis.url },
      stdin: '',
    })
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ran.json()).toMatchObject({ ok: true })
  })
})

describe('what will hurt', () => {
  async function withConfig(
    settings: Record<string, string>,
  ): Promise<Awaited<ReturnType<typeof check>>> {
    const own = await startRedis({ config: settings })
    onTestFinished(() => own.stop())
    return await check({ url: own.url })
  }

  it('is a warning, which leaves the exit code 0', async () => {
    const { exitCode, nodes, stdout } = await withConfig({})
    expect(exitCode).toBe(0)
    expect(codesOf(nodes[0]?.warnings)).toEqual(['no_persistence'])
    expect(stdout).toMatch(/^ {2}warning {2}no_persistence {2}neither AOF nor RDB is on: /m)
  })

  it('is memory that is nearly full, and a fault once it is', async () => {
    const own = await startRedis({ config: { appendonly: 'yes' } })
    onTestFinished(() => own.stop())
    // Beside so much, what connections take does not count.
    await own.command('SET', 'ballast', 'a'.repeat(20 * 1024 * 1024))
    const used = Number(/used_memory:(\d+)/.exec(await own.command('INFO', 'memory'))?.[1])
    await own.command('CONFIG', 'SET', 'maxmemory', String(Math.floor(used * 1.05)))
    expect(codesOf((await check({ url: own.url })).nodes[0]?.warnings)).toEqual([
      'memory_nearly_full',
    ])
    await own.command('CONFIG', 'SET', 'maxmemory', String(Math.floor(used / 2)))
    const full = await check({ url: own.url })
    expect(full.exitCode).toBe(1)
    expect(codesOf(full.nodes[0]?.faults)).toEqual(['memory_full'])
  })

  it('is a fault where check() refuses the store', async () => {
    const { exitCode, nodes, stdout } = await withConfig({
      appendonly: 'yes',
      'maxmemory-policy': 'allkeys-lru',
    })
    expect(exitCode).toBe(1)
    expect(codesOf(nodes[0]?.faults)).toEqual(['unfit'])
    expect(stdout).toMatch(/^ {2}fault {2}unfit {2}Redis at .* may evict keys: /m)
  })

  it('is a replica in place of a primary', async () => {
    const replica = await startReplica(redis)
    onTestFinished(() => replica.stop())
    const { exitCode, nodes } = await check({ url: replica.url })
    expect(exitCode).toBe(1)
    expect(nodes[0]?.faults).toMatchObject([
      { message: expect.stringContaining('read-only replica') },
    ])
  })

  it('is a slow connection', async () => {
    const proxy = await startTcpProxy(redis)
    onTestFinished(() => proxy.close())
    proxy.delayReplies(120)
    const { exitCode, nodes } = await check({ url: `redis://127.0.0.1:${proxy.port}` })
    expect({ exitCode, warnings: codesOf(nodes[0]?.warnings) }).toEqual({
      exitCode: 0,
      warnings: ['slow'],
    })
  })

  it.each([
    ['maxmemory_policy', ['not_checked'], 'no maxmemory, policy unknown'],
    ['maxmemory', [], 'maxmemory unknown, noeviction'],
  ])('is a field that INFO lacks: %s', async (field, warnings, memory) => {
    const proxy = await startTcpProxy(redis)
    onTestFinished(() => proxy.close())
    proxy.blank(`\n${field}:`)
    const { exitCode, nodes } = await check({ url: `redis://127.0.0.1:${proxy.port}` })
    expect({ exitCode, warnings: codesOf(nodes[0]?.warnings) }).toEqual({ exitCode: 0, warnings })
    const facts = nodes[0]?.facts.map(({ message }) => message)
    expect(facts).toContainEqual(expect.stringMatching(`MiB used, ${memory}$`))
  })

  it('is not hidden by a user who may ask little', async () => {
    const own = await startRedis({ config: { appendonly: 'yes' } })
    onTestFinished(() => own.stop())
    const rights = 'info ping time eval evalsha get set del type pttl pexpire'.split(' ')
    const rules = ['on', `>${PASSWORD}`, '~esa:*', ...rights.map((name) => `+${name}`)]
    await own.command('ACL', 'SETUSER', 'little', ...rules)
    const { exitCode, nodes } = await check({
      url: `redis://little:${PASSWORD}@127.0.0.1:${own.port}`,
    })
    expect({ exitCode, faults: nodes[0]?.faults }).toEqual({ exitCode: 0, faults: [] })
    expect(nodes[0]?.facts).toContainEqual({
      code: 'replicas',
      message: '0 connected, min-replicas-to-write unknown',
    })
  })
})

describe('a user without a right', () => {
  const RIGHTS = 'ping time eval evalsha get set del type pttl pexpire'

  async function checkAs(rights: string, prefix = 'esa:') {
    const own = await startRedis()
    onTestFinished(() => own.stop())
    const rules = ['on', `>${PASSWORD}`, '~esa:*', ...rights.split(' ').map((name) => `+${name}`)]
    await own.command('ACL', 'SETUSER', 'limited', ...rules)
    const url = `redis://limited:${PASSWORD}@127.0.0.1:${own.port}`
    return runHere(['check-store', '--json', '--prefix', prefix], { env: { REDIS_URL: url } })
  }

  it('is warned of without INFO', async () => {
    const ran = await checkAs(RIGHTS)
    expect(ran.exitCode).toBe(0)
    const [node] = ran.json()['nodes'] as { warnings: unknown[] }[]
    expect(node?.warnings).toEqual([
      { code: 'not_checked', message: expect.stringContaining('does not let the user run INFO') },
    ])
  })

  it('is unfit, and the right is named', async () => {
    const withoutSet = await checkAs(`info ${RIGHTS.replace('set ', '')}`)
    expect(withoutSet.exitCode).toBe(1)
    expect(withoutSet.stdout).toContain('does not let the user run SET in scripts')
    const elsewhere = await checkAs(`info ${RIGHTS}`, 'other:')
    expect(elsewhere.exitCode).toBe(1)
    expect(elsewhere.stdout).toContain('access keys that begin with')
  })
})

describe('Redis behind Sentinel', () => {
  it('is warned of without min-replicas-to-write', async () => {
    const set = await startSentinel()
    onTestFinished(() => set.stop())
    const options = { sentinels: set.sentinels, name: set.name }
    const client = `new Redis(${JSON.stringify(options)})`
    const { exitCode, nodes } = await check({ client })
    expect(exitCode).toBe(0)
    expect(nodes[0]?.address).toBe(`127.0.0.1:${set.primary.port} (orders via Sentinel)`)
    expect(codesOf(nodes[0]?.warnings)).toContain('min_replicas')
    await set.primary.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    const fixed = await check({ client })
    expect(codesOf(fixed.nodes[0]?.warnings)).not.toContain('min_replicas')
  })
})

describe('a cluster', () => {
  it('is shown master by master', async () => {
    const cluster = await startCluster()
    onTestFinished(() => cluster.stop())
    const nodes = cluster.startupNodes
    const checked = await check({ client: `new Cluster(${JSON.stringify(nodes.slice(0, 1))})` })
    expect(checked.exitCode).toBe(0)
    expect(checked.nodes).toHaveLength(cluster.masters.length)
    const rootNodes = JSON.stringify([{ url: `redis://127.0.0.1:${nodes[0]?.port}` }])
    const nodeRedis = await check({ client: `createCluster({ rootNodes: ${rootNodes} })` })
    const addresses = (of: readonly Node[]) => of.map(({ address }) => address).toSorted()
    expect(addresses(nodeRedis.nodes)).toEqual(addresses(checked.nodes))
  })
})

describe('Redis unreachable', () => {
  it.each<[string, () => Checked, RegExp]>([
    ['nobody listens', () => ({ url: 'redis://127.0.0.1:1' }), /ECONNREFUSED/],
    [
      'the password is wrong',
      () => ({ url: `redis://:hunter2x@127.0.0.1:${closed.port}` }),
      /WRONGPASS/,
    ],
    ['the password is missing', () => ({ url: closed.url }), /NOAUTH/],
  ])('ends with 3 when %s', async (_what, checked, why) => {
    const options = ['--timeout', '500ms']
    const { exitCode, stderr, object } = await check({ ...checked(), options })
    expect(exitCode).toBe(3)
    expect(stderr).toMatch(/^service-auth: .*\n$/)
    expect(stderr).toMatch(why)
    expect(object).toMatchObject({ ok: false, error: { code: 'store_unavailable' } })
  })

  it('ends with 3 when it hangs, after --timeout', async () => {
    const own = await startRedis()
    onTestFinished(async () => {
      own.resume()
      await own.stop()
    })
    own.pause()
    const startedAt = performance.now()
    const { exitCode, stderr } = await check({ url: own.url, options: ['--timeout', '300ms'] })
    expect(exitCode).toBe(3)
    expect(stderr).toContain('no reply in time')
    expect(performance.now() - startedAt).toBeLessThan(5000)
  })
})

describe('what says where Redis is', () => {
  it.each([
    [
      'no default export',
      'export const client = 1',
      /must be a Redis or Cluster client of ioredis/,
    ],
    ['something else', `export default '${PASSWORD}'`, /must be a Redis or Cluster client/],
    [
      'a client of half a database',
      'export default new Redis({ db: 1.5, lazyConnect: true })',
      /db/,
    ],
    ['an error', `throw new Error('${PASSWORD}')`, /cannot be loaded \(Error\): run it with node/],
    ['no JavaScript', `{ "url": ${PASSWORD} `, /cannot be loaded \(SyntaxError\)/],
    [
      'an import of nothing',
      "import 'no-such-package'",
      /cannot be loaded \(ERR_MODULE_NOT_FOUND\)/,
    ],
  ])('is refused when the module has %s', async (_what, text, message) => {
    const ran = await runChild(['check-store', '--redis', await moduleFile(text)], { stdin: '' })
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr).not.toContain('hunter2')
  })

  it.each([
    ['is not there', async () => '/no/such/hunter2.mjs', /does not exist/],
    ['is a folder', temporaryFolder, /does not exist/],
    ['is JSON', () => temporaryFile('{}'), /must end in .js, .mjs, .cjs/],
  ])('is refused when the file %s', async (_what, file, message) => {
    const ran = await runHere(['check-store', '--redis', await file()])
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr).not.toContain('hunter2')
  })

  it.each([0o664, 0o646])('is refused, and not run, with the mode %o', async (mode) => {
    const path = await moduleFile('process.exit(7)')
    await chmod(path, mode)
    const ran = await runHere(['check-store', '--redis', path], { env: { REDIS_URL: redis.url } })
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ran.stderr).toContain('other users can change the --redis file: run chmod go-w on it')
  })

  it.each([
    '',
    `:${PASSWORD}@host:6379`,
    `http://:${PASSWORD}@host`,
    'redis://',
    'host',
    `redis://:${PASSWORD}@host/x`,
    `redis://:${PASSWORD}@host/3x`,
    `redis://:${PASSWORD}@host/1/2`,
    `redis://:${PASSWORD}@host/-1`,
    `redis://:${PASSWORD}@host?db=x`,
    `redis://:${PASSWORD}@host:99999`,
  ])('is refused when REDIS_URL is %j', async (url) => {
    const ran = await runHere(['check-store'], { env: { REDIS_URL: url } })
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ran.stderr).toMatch(/REDIS_URL/)
    expect(ran.stderr).not.toContain('hunter2')
  })

  it.each(['', '/', '/0', '/3', '?db=3'])('may be a URL that ends in %j', async (end) => {
    const { exitCode } = await runHere(['check-store'], { env: { REDIS_URL: redis.url + end } })
    expect(exitCode).toBe(0)
  })

  it.each(['5', '0ms', '61s', ''])('is not waited for %j', async (timeout) => {
    const argv = ['check-store', `--timeout=${timeout}`]
    expect((await runHere(argv, { env: { REDIS_URL: redis.url } })).exitCode).toBe(2)
  })
})
