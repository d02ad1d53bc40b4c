import { chmod, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { startTcpProxy } from '../../support/network/tcp-proxy.js'
import { startRedis } from '../../support/redis/redis.js'
import { startCluster } from '../../support/redis/redis-cluster.js'
import { startSentinel } from '../../support/redis/redis-sentinel.js'
import {
  expectFailure,
  runBoth,
  runChild,
  runHere,
  temporaryFile,
  temporaryFolder,
} from '../kit.js'

const PASSWORD = 'hunter2hunter2hunter2'

const redis = await startRedis({ config: { appendonly: 'yes' } })
/** With a password; `default` needs it too. */
const closed = await startRedis({ config: { appendonly: 'yes', requirepass: PASSWORD } })
afterAll(() => Promise.all([redis.stop(), closed.stop()]))
const CLOSED = `new Redis({ port: ${closed.port}, password: '${PASSWORD}' })`

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

async function check({ url, client, options = ['--timeout', '5s'] }: Checked) {
  const place = client && ['--redis', await moduleFile(`export default ${client}`)]
  const argv = ['check-store', ...(place ?? []), ...options]
  const ran = await runBoth(argv, { env: url === undefined ? {} : { REDIS_URL: url } })
  return { ...ran, nodes: (ran.object['nodes'] ?? []) as Node[] }
}

const codesOf = (findings: readonly Found[] | undefined) => findings?.map(({ code }) => code)

describe('a store that is fit', () => {
  it('is shown, and ends with 0', async () => {
    const { exitCode, stdout, stderr, object, nodes } = await check({ url: redis.url })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(object).toMatchObject({ command: 'check-store', ok: true })
    const facts = ['version', 'persistence', 'replicas', 'memory', 'clock']
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
        '  clock        agrees with this machine',
        '',
      ].join('\n'),
    )
  })

  it.each<[string, Checked]>([
    ['REDIS_URL', { url: `redis://:${PASSWORD}@127.0.0.1:${closed.port}` }],
    ['a client of ioredis rather than REDIS_URL', { url: 'redis://127.0.0.1:1', client: CLOSED }],
    [
      'a client of node-redis',
      { client: `createClient({ url: '${closed.url}', password: '${PASSWORD}' })` },
    ],
    ['one that is connected', { client: `await createClient({ url: '${redis.url}' }).connect()` }],
  ])('is found by %s', async (_what, checked) => {
    const { exitCode, nodes } = await check(checked)
    expect({ exitCode, nodes: nodes.length }).toEqual({ exitCode: 0, nodes: 1 })
  })

  it('is found by a module in the working directory, whose client ends with the process', async () => {
    const path = await moduleFile(`export default ${CLOSED}`)
    const argv = ['check-store', '--json', '--redis', relative(process.cwd(), path)]
    const ran = await runChild(argv, { stdin: '' })
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
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
    expect(stdout).toMatch(/^ {2}warning {2}no_persistence {2}AOF is off and RDB is off: /m)
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

  it.each([
    ['maxmemory_policy', ['not_checked'], 'no maxmemory, policy unknown'],
    ['maxmemory', [], 'maxmemory unknown, noeviction'],
  ])('is a field that INFO lacks: %s', async (field, warnings, memory) => {
    const proxy = await startTcpProxy(redis)
    onTestFinished(() => proxy.close())
    proxy.blank(`\n${field}:`)
    const { exitCode, nodes } = await check({ url: `redis://127.0.0.1:${proxy.port}` })
    expect([exitCode, codesOf(nodes[0]?.warnings)]).toEqual([0, warnings])
    const facts = nodes[0]?.facts.map(({ message }) => message)
    expect(facts).toContainEqual(expect.stringMatching(`MiB used, ${memory}$`))
  })
})

it('a user who may run neither INFO nor CONFIG is warned', async () => {
  const own = await startRedis()
  onTestFinished(() => own.stop())
  const rights = 'ping time eval evalsha get set del pttl pexpire'.split(' ')
  const rules = ['on', `>${PASSWORD}`, '~esa:*', ...rights.map((name) => `+${name}`)]
  await own.command('ACL', 'SETUSER', 'limited', ...rules)
  const url = `redis://limited:${PASSWORD}@127.0.0.1:${own.port}`
  const { exitCode, nodes } = await check({ url })
  expect({ exitCode, faults: nodes[0]?.faults }).toEqual({ exitCode: 0, faults: [] })
  expect(nodes[0]?.warnings).toEqual([
    { code: 'not_checked', message: expect.stringContaining('does not let the user run INFO') },
  ])
})

describe('Redis behind Sentinel', () => {
  it('is warned of without min-replicas-to-write', async () => {
    const set = await startSentinel()
    onTestFinished(() => set.stop())
    const options = { sentinels: set.sentinels, name: set.name }
    const client = `new Redis(${JSON.stringify(options)})`
    const { exitCode, nodes } = await check({ client })
    expect(exitCode).toBe(0)
    expect(nodes[0]?.address).toBe('orders via Sentinel')
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
  it('ends with 3 when the password is wrong', async () => {
    const url = `redis://:hunter2x@127.0.0.1:${closed.port}`
    const { object, ...ran } = await check({ url, options: ['--timeout', '500ms'] })
    expectFailure(ran, 3, /WRONGPASS/)
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
    ['something else', `export default '${PASSWORD}'`, /must be a Redis or Cluster client/],
    [
      'a client of half a database',
      'export default new Redis({ db: 1.5, lazyConnect: true })',
      /db/,
    ],
    ['an error', `throw new Error('${PASSWORD}')`, /cannot be loaded \(Error\): run it with node/],
    ['no JavaScript', `{ "url": ${PASSWORD} `, /cannot be loaded \(SyntaxError\)/],
    ['an import of nothing', "import 'no-such-package'", /\(ERR_MODULE_NOT_FOUND\)/],
  ])('is refused when the module has %s', async (_what, text, message) => {
    const ran = await runChild(['check-store', '--redis', await moduleFile(text)], { stdin: '' })
    expectFailure({ ...ran, exitCode: Number(ran.exitCode) }, 2, message)
    expect(ran.stderr).not.toContain('hunter2')
  })

  it.each([
    ['is not there', async () => '/no/such/hunter2.mjs', /does not exist/],
    ['is a folder', temporaryFolder, /does not exist/],
    ['is JSON', () => temporaryFile('{}'), /must end in .js, .mjs, .cjs/],
  ])('is refused when the file %s', async (_what, file, message) => {
    expectFailure(await runBoth(['check-store', '--redis', await file()]), 2, message)
  })

  it.each([0o664, 0o646])('is refused, and not run, with the mode %o', async (mode) => {
    const path = await moduleFile('process.exit(7)')
    await chmod(path, mode)
    const ran = await runHere(['check-store', '--redis', path], { env: { REDIS_URL: redis.url } })
    expectFailure(ran, 2, 'other users can change the --redis file: run chmod go-w on it')
  })

  it.each([
    '',
    `http://:${PASSWORD}@host`,
    'redis://',
    `redis://:${PASSWORD}@host/x`,
    `redis://:${PASSWORD}@host/-1`,
    `redis://:${PASSWORD}@host?db=x`,
    `redis://:${PASSWORD}@host:99999`,
  ])('is refused when REDIS_URL is %j', async (url) => {
    expectFailure(await runBoth(['check-store'], { env: { REDIS_URL: url } }), 2, /REDIS_URL/)
  })

  it.each(['/', '/3', '?db=3'])('may be a URL that ends in %j', async (end) => {
    const { exitCode } = await runHere(['check-store'], { env: { REDIS_URL: redis.url + end } })
    expect(exitCode).toBe(0)
  })
})
