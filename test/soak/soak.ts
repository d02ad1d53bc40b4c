import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestIssuer } from 'express-service-auth/testing'
import { freePort } from '../support/network/free-port.js'
import { startRedis } from '../support/redis/redis.js'
import { type Caller, createCaller } from './caller.js'
import { disturb, keepWriting, pickOne } from './commotion.js'
import { startReceiver } from './receiver-process.js'

export interface SoakOptions {
  readonly seconds: number
  readonly leastWrites: number
}

export interface SoakReport {
  readonly writes: number
  readonly counts: Caller['counts']
  readonly kills: number
  readonly restarts: number
  readonly violations: readonly string[]
}

const LEASE_SECONDS = 1
const PROGRAM = new URL('receiver.ts', import.meta.url)
const WRITERS = 48
const KILL_EVERY_MS = 4000
const RESTART_EVERY_MS = 7000
/** For the last retries, once nothing is broken any more. */
const GRACE_MS = 20_000

/**
 * Two receivers on one Redis, which writes every command to disk. Receivers are killed and Redis is
 * restarted at random while callers write and retry. A ledger of its own counts the effects.
 */
export async function soak({ seconds, leastWrites }: SoakOptions): Promise<SoakReport> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-soak-'))
  const ledger = join(folder, 'ledger')
  await writeFile(ledger, '')
  const issuer = await createTestIssuer()
  const redis = await startRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })
  const environment = {
    LEDGER: ledger,
    LEASE_SECONDS: String(LEASE_SECONDS),
    REDIS_URL: redis.url,
    ISSUER: issuer.url,
  }
  const receivers = await Promise.all(
    [await freePort(), await freePort()].map((port) => startReceiver(PROGRAM, port, environment)),
  )
  const tokens = Array.from({ length: 20 }, () => issuer.token())
  const endsAt = performance.now() + seconds * 1000
  const caller = createCaller({
    ports: receivers.map(({ port }) => port),
    tokens,
    giveUpAt: endsAt + GRACE_MS,
  })
  const written: string[] = []
  const isOver = (): boolean => performance.now() >= endsAt
  const [kills, restarts] = await Promise.all([
    disturb(isOver, KILL_EVERY_MS, () => pickOne(receivers).replace()),
    disturb(isOver, RESTART_EVERY_MS, () => redis.restart({ keepData: true })),
    ...Array.from({ length: WRITERS }, (_, writer) =>
      keepWriting(caller, { name: String(writer), path: '/orders', isOver, written }),
    ),
  ])
  const effects = await countEffects(ledger)
  const violations = [...caller.violations, ...judgeEffects(effects, written)]
  if (written.length < leastWrites) violations.push(`only ${written.length} writes`)
  caller.close()
  await Promise.all(receivers.map((receiver) => receiver.stop()))
  await redis.stop()
  await issuer.close()
  await rm(folder, { recursive: true })
  return { writes: written.length, counts: caller.counts, kills, restarts, violations }
}

async function countEffects(ledger: string): Promise<ReadonlyMap<string, number>> {
  const effects = new Map<string, number>()
  for (const key of (await readFile(ledger, 'utf8')).split('\n')) {
    if (key !== '') effects.set(key, (effects.get(key) ?? 0) + 1)
  }
  return effects
}

function judgeEffects(effects: ReadonlyMap<string, number>, written: readonly string[]): string[] {
  const twice = [...effects].filter(([, count]) => count > 1)
  const missing = written.filter((key) => !effects.has(key))
  return [
    ...twice.map(([key, count]) => `${key} had ${count} effects`),
    ...missing.map((key) => `${key} was answered but had no effect`),
  ]
}
