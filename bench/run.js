/*
 * `npm run bench` measures everything; `npm run bench -- tokens writes` only what is named. It prints
 * numbers and tests nothing: what the machine does beside it shows in the spread.
 */
import { cpus } from 'node:os'
import { startIssuer } from './issuer.js'
import { isPinned, LOAD_CORE, startNode } from './processes.js'
import { startRedis } from './redis.js'
import { heap } from './sections/heap.js'
import { keys } from './sections/keys.js'
import { peers, tokens } from './sections/reads.js'
import { writes } from './sections/writes.js'

const SECTIONS = { tokens, writes, keys, peers, heap }

const FEW = 10
/** Sent in turn: twice as many as any cache here holds, so that each has been forgotten. */
const FRESH = 20_000

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 15)
const DURATION_MS = Number(process.env.BENCH_MS ?? 500)

const named = process.argv.slice(2)
const unknown = named.filter((name) => !Object.hasOwn(SECTIONS, name))
if (unknown.length > 0) {
  console.error(`no section ${unknown.join(', ')}: there are ${Object.keys(SECTIONS).join(', ')}`)
  process.exit(1)
}

const began = performance.now()
const [{ model }] = cpus()
console.log(`Node ${process.version}, ${cpus().length} cores (${model.trim()})`)
console.log(isPinned ? 'server on core 0, load and Redis on core 1' : 'NOT PINNED to cores')

const redis = await startRedis()
const issuer = await startIssuer()
const load = startNode(LOAD_CORE, new URL('load.js', import.meta.url).pathname)
try {
  const fresh = await issuer.mint(FRESH)
  const pools = { few: await issuer.mint(FEW), fresh, strangers: issuer.strangers(FRESH) }
  await load.ask({ pools })
  const bench = {
    load,
    issuer,
    redis,
    timing: { rounds: ROUNDS, durationMs: DURATION_MS },
    settings: { issuer: issuer.issuer, redisUrl: redis.url },
  }
  for (const [name, section] of Object.entries(SECTIONS)) {
    if (named.length === 0 || named.includes(name)) await section(bench)
  }
  console.log(`\n${((performance.now() - began) / 1000).toFixed(0)} s`)
} finally {
  await load.stop()
  issuer.stop()
  await redis.stop()
}
