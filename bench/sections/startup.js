import { once } from 'node:events'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import { entryIn } from '../build.js'
import { median } from '../figures.js'
import { SERVER_CORE, spawnPinned } from '../processes.js'
import { atMost, printTable, versionOf } from '../table.js'

const PROCESSES = 20
const MAX_TIME = 2.2
const MAX_MEMORY = 1.3
const MAX_OF_JOSE = 1.5

const POLICY = {
  issuer: 'https://core.example.com',
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
}

/** What the package adds to the start of a process, and to its memory. */
export async function startup(bench) {
  const { build } = bench.settings
  const entry = (name) => JSON.stringify(entryIn(build, name).href)
  const jose = createRequire(entryIn(build)).resolve('jose')
  const { node, express, peer, ours, ...others } = await measurePrograms({
    node: '',
    express: `import 'express'`,
    peer: `
      import 'express'
      import { auth } from 'express-oauth2-jwt-bearer'
      auth({ issuerBaseURL: 'https://core.example.com', audience: 'orders' })`,
    ours: `
      import 'express'
      import { serviceAuth } from ${entry('.')}
      serviceAuth(${JSON.stringify(POLICY)})`,
    jose: `import ${JSON.stringify(jose)}`,
    client: `import ${entry('./client')}`,
    testing: `import ${entry('./testing')}`,
  })
  const beside = (row, base) => [(row.ms - base.ms).toFixed(1), (row.rss / 1e6).toFixed(1)]
  const time = (ours.ms - express.ms) / (peer.ms - express.ms)
  const memory = ours.rss / peer.rss
  printTable(
    ['start of a process with Express', 'ms more', 'MB in all', 'ratio', 'aim', 'memory', 'aim'],
    [
      [
        'express-service-auth and a serviceAuth',
        ...beside(ours, express),
        ...[time.toFixed(2), atMost(MAX_TIME, time), memory.toFixed(2), atMost(MAX_MEMORY, memory)],
      ],
      [versionOf('express-oauth2-jwt-bearer'), ...beside(peer, express), '', '', '', ''],
    ],
  )
  const toJose = ({ ms }) => (ms - node.ms) / (others.jose.ms - node.ms)
  printTable(
    ['start of a process without Express', 'ms more', 'MB in all', 'ratio', 'aim'],
    [
      ...['client', 'testing'].map((name) => {
        const ratio = toJose(others[name])
        const figures = [ratio.toFixed(2), atMost(MAX_OF_JOSE, ratio)]
        return [`express-service-auth/${name}`, ...beside(others[name], node), ...figures]
      }),
      ['jose', ...beside(others.jose, node), '', ''],
    ],
  )
  await coldStart(bench, entry)
}

/** A function that is started for one request: import, key set and token, or import, token and first write. */
async function coldStart({ issuer, redis, settings: { issuer: url, redisUrl } }, entry) {
  const [token] = await issuer.mint(1)
  const policy = JSON.stringify({ ...POLICY, issuer: url })
  const peerAuth = `
    import { auth } from 'express-oauth2-jwt-bearer'
    guards.push(auth({ issuer: '${url}', jwksUri: '${url}/.well-known/jwks.json', audience: 'orders' }))`
  const ourAuth = `
    import { serviceAuth } from ${entry('.')}
    guards.push(serviceAuth(${policy}))`
  const programs = {
    express: '',
    ours: ourAuth,
    peer: peerAuth,
    ourWrite: `${ourAuth}
      import { requireIdempotencyKey } from ${entry('.')}
      import { redisStore } from ${entry('./redis')}
      import { Redis } from 'ioredis'
      guards.push(requireIdempotencyKey({ store: redisStore(new Redis('${redisUrl}', { lazyConnect: true })) }))`,
    peerWrite: `${peerAuth}
      import { idempotency } from 'express-idempotency'
      import adapters from 'express-idempotency-redis-adapter'
      const dataAdapter = new adapters.default({ connectionConfig: { url: '${redisUrl}' } })
      await dataAdapter.connect()
      guards.push(idempotency({ dataAdapter }))`,
  }
  const answering = (program) => `
    import express from 'express'
    const guards = []
    ${program}
    const app = express()
    app.post('/orders', ...guards, (req, res) => res.status(201).json({ id: '17' }))
    const headers = { authorization: 'Bearer ${token}', 'idempotency-key': crypto.randomUUID() }
    import { request } from 'node:http'
    const server = app.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      request({ port, path: '/orders', method: 'POST', headers }, (res) => {
        if (res.statusCode !== 201) throw new Error(String(res.statusCode))
        res.resume().on('end', () => {
          process.stdout.write(String(process.memoryUsage.rss()), () => process.exit())
        })
      }).end()
    })`
  const all = Object.entries(programs).map(([name, program]) => [name, answering(program)])
  const { express, ...runs } = await measurePrograms(Object.fromEntries(all), () =>
    redis.client.script('flush'),
  )
  const more = ({ ms }) => (ms - express.ms).toFixed(1)
  const rowOf = (label, ours, peer) => {
    const ratio = (ours.ms - express.ms) / (peer.ms - express.ms)
    return [label, more(ours), more(peer), ratio.toFixed(2)]
  }
  const { ours, peer, ourWrite, peerWrite } = runs
  printTable(
    ['first answer of a process, beyond Express', 'ms more', 'ms more, peers', 'ratio'],
    [
      rowOf(`first token, ${versionOf('express-oauth2-jwt-bearer')}`, ours, peer),
      rowOf(`first write, the same and ${versionOf('express-idempotency')}`, ourWrite, peerWrite),
    ],
  )
}

/** The medians of whole processes, each program in turn. */
async function measurePrograms(programs, before) {
  const runs = Object.fromEntries(Object.keys(programs).map((name) => [name, []]))
  for (let count = 0; count < PROCESSES; count += 1) {
    for (const [name, program] of Object.entries(programs)) {
      await before?.()
      runs[name].push(await run(program))
    }
  }
  return Object.fromEntries(
    Object.entries(runs).map(([name, all]) => [
      name,
      { ms: median(all.map(({ ms }) => ms)), rss: median(all.map(({ rss }) => rss)) },
    ]),
  )
}

async function run(program) {
  const code = `${program}\nprocess.stdout.write(String(process.memoryUsage.rss()))`
  const began = performance.now()
  const child = spawnPinned(
    SERVER_CORE,
    process.execPath,
    ['--input-type=module', '--eval', code],
    { cwd: new URL('..', import.meta.url), stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const [rss, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (status !== 0) throw new Error(`a program ended with ${status}`)
  return { ms: performance.now() - began, rss: Number(rss) }
}
