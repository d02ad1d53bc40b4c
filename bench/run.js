/*
 * Measures all sections, or those that are named, and prints the page of results as Markdown, or with
 * --json as JSON. It prints numbers and tests nothing.
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { readArguments } from './arguments.js'
import { startIssuer } from './issuer.js'
import { endLine, headLines } from './markdown.js'
import { isPinned, LOAD_CORE, startNode } from './processes.js'
import { startRedis } from './redis.js'
import { beginSection, reportOf } from './report.js'
import { bound } from './sections/bound.js'
import { capacity } from './sections/capacity.js'
import { client } from './sections/client.js'
import { credentials } from './sections/credentials.js'
import { denylist } from './sections/denylist.js'
import { encryption } from './sections/encryption.js'
import { growth } from './sections/growth.js'
import { heap } from './sections/heap.js'
import { keys } from './sections/keys.js'
import { migrationReconcile } from './sections/migration-reconcile.js'
import { migrationRun } from './sections/migration-run.js'
import { migrationValidate } from './sections/migration-validate.js'
import { observers } from './sections/observers.js'
import { policies } from './sections/policies.js'
import { postgres } from './sections/postgres.js'
import { redisClients } from './sections/redis-clients.js'
import { startup } from './sections/startup.js'
import { tokens } from './sections/tokens.js'
import { writes } from './sections/writes.js'
import { printBeside, printLines, versionIn } from './table.js'

const SECTIONS = {
  tokens,
  policies,
  observers,
  denylist,
  credentials,
  bound,
  writes,
  'redis-clients': redisClients,
  encryption,
  postgres,
  keys,
  client,
  heap,
  growth,
  capacity,
  startup,
  'migration-validate': migrationValidate,
  'migration-reconcile': migrationReconcile,
  'migration-run': migrationRun,
}

const FEW = 10
/** Sent in turn: twice as many as any cache here holds, so that each has been forgotten. */
const FRESH = 20_000

const fromWhereAsked = (path) => resolve(process.env.BENCH_FROM ?? '.', path)
const { named, isJsonAlone, file } = asked()
if (isJsonAlone) printBeside()
const report = file && placeFor(file)
const otherBuild = findOtherBuild(process.env.BENCH_OTHER)

const began = performance.now()
const redis = await startRedis()
const issuer = await startIssuer()
const load = startNode(LOAD_CORE, new URL('load.js', import.meta.url).pathname)
try {
  const facts = await factsOfRun()
  printLines(headLines(facts))
  const fresh = await issuer.mint(FRESH)
  const pools = { few: await issuer.mint(FEW), fresh, strangers: issuer.strangers(FRESH) }
  await load.ask({ pools })
  const build = new URL('../', import.meta.url).href
  const settings = { issuer: issuer.issuer, redisUrl: redis.url, build }
  const bench = { load, issuer, redis, settings, otherBuild }
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (named.length > 0 && !named.includes(name)) continue
    beginSection(name)
    await section(bench)
  }
  facts.minutes = (performance.now() - began) / 60_000
  facts.load.end = loadOfMachine()
  printLines(['', endLine(facts)])
  hand(`${JSON.stringify(reportOf(facts), undefined, 2)}\n`)
} finally {
  await load.stop()
  issuer.stop()
  await redis.stop()
}

/** The folder of another copy of this package that has been built, as a URL. */
function findOtherBuild(folder) {
  if (folder === undefined) return undefined
  const path = fromWhereAsked(folder)
  if (existsSync(`${path}/dist`)) return pathToFileURL(`${path}/`).href
  console.error(`BENCH_OTHER: there is no ${path}/dist`)
  process.exit(1)
}

function asked() {
  try {
    return readArguments(process.argv.slice(2), Object.keys(SECTIONS))
  } catch ({ message }) {
    console.error(message)
    return process.exit(1)
  }
}

/** Where the report goes. What cannot be written is said before the run, not after it. */
function placeFor(file) {
  const path = fromWhereAsked(file)
  try {
    appendFileSync(path, '')
    return path
  } catch ({ message }) {
    console.error(`--json: ${message}`)
    return process.exit(1)
  }
}

/** Gives the figures as JSON to who wants them so. */
function hand(text) {
  if (isJsonAlone) process.stdout.write(text)
  if (report !== undefined) writeFileSync(report, text)
}

async function factsOfRun() {
  const [, redisVersion] = /redis_version:(\S+)/.exec(await redis.client.info('server'))
  const { name, version } = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  )
  return {
    package: { name, version },
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    versions: {
      Redis: redisVersion,
      express: versionIn('express'),
      ioredis: versionIn('ioredis'),
    },
    machine: {
      cpu: cpus()[0].model.trim(),
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
      os: `${type()} ${release()}`,
    },
    isPinned,
    load: { start: loadOfMachine() },
  }
}

function loadOfMachine() {
  return loadavg()[0]
}
