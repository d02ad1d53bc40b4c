import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createTestIssuer } from 'express-service-auth/testing'
import { freePort } from '../support/free-port.js'
import { startRedis } from '../support/redis.js'
import { type Caller, createCaller } from './caller.js'
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
    [await freePort(), await freePort()].map((port) => startReceiver(port, environment)),
  )
  const tokens = Array.from({ length: 20 }, () => issuer.token())
  const endsAt = performance.now() + seconds * 1000
  const caller = createCaller({
    ports: receivers.map(({ port }) => port),
    tokens,
    giveUpAt: endsAt + GRACE_MS,
  })
  const written: string[] = []
  const [kills, restarts] = await Promise.all([
    disturb(endsAt, KILL_EVERY_MS, () => pickOne(receivers).replace()),
    disturb(endsAt, RESTART_EVERY_MS, () => redis.restart({ keepData: true })),
    ...Array.from({ length: WRITERS }, (_, writer) =>
      keepWriting(caller, { writer, endsAt, written }),
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

const pickOne = <T>(choices: readonly T[]): T =>
  choices[Math.floor(Math.random() * choices.length)] as T

async function disturb(
  endsAt: number,
  everyMs: number,
  work: () => Promise<void>,
): Promise<number> {
  let count = 0
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, everyMs * (0.5 + Math.random())))
    if (performance.now() >= endsAt) return count
    await work()
    count += 1
  }
}

/** `written` takes the keys whose write is known to have happened. */
async function keepWriting(
  caller: Caller,
  { writer, endsAt, written }: { writer: number; endsAt: number; written: string[] },
): Promise<void> {
  for (let number = 0; performance.now() < endsAt; number += 1) {
    const key = `${writer}-${number}`
    const outcome = await caller.write(key, `item of ${key}`)
    if (outcome !== 'unknown') written.push(key)
    if (Math.random() < 0.1) await caller.write(key, `item of ${key}`)
  }
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
