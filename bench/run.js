/*
 * Measures all sections, or those that are named, and prints the page of results as Markdown. It
 * prints numbers and tests nothing.
 */
import { existsSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { startIssuer } from './issuer.js'
import { isPinned, LOAD_CORE, startNode } from './processes.js'
import { startRedis } from './redis.js'
import { client } from './sections/client.js'
import { credentials } from './sections/credentials.js'
import { denylist } from './sections/denylist.js'
import { encryption } from './sections/encryption.js'
import { heap } from './sections/heap.js'
import { keys } from './sections/keys.js'
import { migrationReconcile } from './sections/migration-reconcile.js'
import { migrationRun } from './sections/migration-run.js'
import { migrationValidate } from './sections/migration-validate.js'
import { observers } from './sections/observers.js'
import { postgres } from './sections/postgres.js'
import { tokens } from './sections/tokens.js'
import { writes } from './sections/writes.js'
import { versionOf } from './table.js'

const SECTIONS = {
  tokens,
  observers,
  denylist,
  credentials,
  writes,
  encryption,
  postgres,
  keys,
  client,
  heap,
  'migration-validate': migrationValidate,
  'migration-reconcile': migrationReconcile,
  'migration-run': migrationRun,
}

const FEW = 10
/** Sent in turn: twice as many as any cache here holds, so that each has been forgotten. */
const FRESH = 20_000

const named = process.argv.slice(2)
const unknown = named.filter((name) => !Object.hasOwn(SECTIONS, name))
if (unknown.length > 0) {
  console.error(`no section ${unknown.join(', ')}: there are ${Object.keys(SECTIONS).join(', ')}`)
  process.exit(1)
}
const otherBuild = findOtherBuild(process.env.BENCH_OTHER)

const began = performance.now()
const redis = await startRedis()
const issuer = await startIssuer()
const load = startNode(LOAD_CORE, new URL('load.js', import.meta.url).pathname)
try {
  await describeMachine()
  const fresh = await issuer.mint(FRESH)
  const pools = { few: await issuer.mint(FEW), fresh, strangers: issuer.strangers(FRESH) }
  await load.ask({ pools })
  const dist = new URL('../dist/', import.meta.url).href
  const settings = { issuer: issuer.issuer, redisUrl: redis.url, dist }
  const bench = { load, issuer, redis, settings, otherBuild }
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (named.length === 0 || named.includes(name)) await section(bench)
  }
  const minutes = (performance.now() - began) / 60_000
  console.log(`\n${minutes.toFixed(1)} minutes; load of the machine at the end ${loadOfMachine()}.`)
} finally {
  await load.stop()
  issuer.stop()
  await redis.stop()
}

/** The folder of another build of this package, as a URL, where one is to be compared. */
function findOtherBuild(folder) {
  if (folder === undefined) return undefined
  const path = resolve(process.env.INIT_CWD ?? '.', folder)
  if (existsSync(`${path}/index.js`)) return pathToFileURL(`${path}/`).href
  console.error(`BENCH_OTHER: there is no ${path}/index.js`)
  process.exit(1)
}

async function describeMachine() {
  const [, redisVersion] = /redis_version:(\S+)/.exec(await redis.client.info('server'))
  const versions = [
    `Node ${process.versions.node}`,
    `Redis ${redisVersion}`,
    ...['express', 'ioredis'].map(versionOf),
  ]
  const pinning = isPinned
    ? 'Server on core 0, load and Redis on core 1'
    : 'NOT PINNED to cores: the figures say little'
  console.log(
    `# Results\n\n${versions.join(', ')}; ${cpus().length} cores, ${cpus()[0].model.trim()}.`,
  )
  console.log(`${pinning}; load of the machine at the start ${loadOfMachine()}.`)
}

function loadOfMachine() {
  return loadavg()[0].toFixed(1)
}
