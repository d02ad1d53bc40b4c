import { setTimeout as delay } from 'node:timers/promises'
import { migration } from 'express-service-auth/postgres'
import { createTestIssuer } from 'express-service-auth/testing'
import { freePort } from '../support/network/free-port.js'
import { startPostgres } from '../support/postgres/postgres.js'
import { type Caller, createCaller } from './caller.js'
import { disturb, keepWriting, pickOne } from './commotion.js'
import { lookAt } from './postgres-tables.js'
import { startReceiver } from './receiver-process.js'

export interface PostgresSoakOptions {
  /** At most. */
  readonly seconds: number
  readonly writes: number
}

export interface PostgresSoakReport {
  readonly figures: Readonly<Record<string, number | string>>
  readonly violations: readonly string[]
}

const PROGRAM = new URL('postgres-receiver.ts', import.meta.url)
const EFFECTS = `
  create table effect (path text not null, key text not null);
  create index on effect (path, key)`
const WRITERS = 32
/** Every fourth writes what is kept; what the others write is swept meanwhile. */
const KEPT_EVERY = 4
const KILL_EVERY_MS = 4000
const STOP_EVERY_MS = 9000
const DRAFT_SECONDS = 15
/** For the last retries, once nothing is broken any more. */
const GRACE_MS = 30_000
const MAX_DEAD = 0.1
/** What vacuum may leave between two of its turns. */
const MAX_GROWTH = 1.5

/**
 * Two receivers on one Postgres, which flushes every commit. Receivers are killed and Postgres is stopped
 * without a checkpoint at random while callers write and retry, and both receivers sweep.
 */
export async function soakPostgres(options: PostgresSoakOptions): Promise<PostgresSoakReport> {
  const issuer = await createTestIssuer()
  const postgres = await startPostgres({ settings: { fsync: 'on', autovacuum_naptime: '5s' } })
  await postgres.query(migration())
  await postgres.query(EFFECTS)
  const tables = lookAt(postgres)
  const environment = {
    DATABASE_URL: postgres.url,
    DRAFT_SECONDS: String(DRAFT_SECONDS),
    ISSUER: issuer.url,
  }
  const receivers = await Promise.all(
    [await freePort(), await freePort()].map((port) => startReceiver(PROGRAM, port, environment)),
  )
  const endsAt = performance.now() + options.seconds * 1000
  const caller = createCaller({
    ports: receivers.map(({ port }) => port),
    tokens: Array.from({ length: 20 }, () => issuer.token()),
    giveUpAt: endsAt + GRACE_MS,
  })
  const kept: string[] = []
  const drafts: string[] = []
  const writes = (): number => kept.length + drafts.length
  const isOver = (): boolean => writes() >= options.writes || performance.now() >= endsAt
  const isHalf = (): boolean =>
    writes() >= options.writes / 2 || performance.now() >= endsAt - options.seconds * 500
  const stopAndStart = async (): Promise<void> => {
    await postgres.stopImmediate()
    await postgres.restart()
  }
  const half = tellWhen(isHalf, tables.bytesOfRecord)
  const [kills, stops] = await Promise.all([
    disturb(isOver, KILL_EVERY_MS, () => pickOne(receivers).replace()),
    disturb(isOver, STOP_EVERY_MS, stopAndStart),
    ...Array.from({ length: WRITERS }, (_, writer) => {
      const isKept = writer % KEPT_EVERY === 0
      const path = isKept ? '/orders' : '/drafts'
      const written = isKept ? kept : drafts
      return keepWriting(caller, { name: String(writer), path, isOver, written })
    }),
  ])
  const [bytesAtHalf, bytesAtEnd] = [await half, await tables.bytesOfRecord()]
  // One second more than a draft is kept, and some turns of the sweepers.
  await delay((DRAFT_SECONDS + 4) * 1000)
  const found = {
    writes: writes(),
    kept: kept.length,
    effects: await tables.effects(),
    records: await tables.records(),
    dead: await tables.deadRecords(),
    bytesAtHalf,
    bytesAtEnd,
  }
  const strange = await tables.strangeEffects()
  const violations = [
    ...caller.violations,
    ...strange.map(({ key, count }) => `${key} had ${count} effects`),
    ...judge(found, caller.counts, options),
  ]
  caller.close()
  await Promise.all(receivers.map((receiver) => receiver.stop()))
  await postgres.stop()
  await issuer.close()
  const { dead, ...counted } = found
  const figures = {
    ...counted,
    'dead records': dead.toFixed(3),
    ...caller.counts,
    'receivers killed': kills,
    'immediate stops': stops,
  }
  return { figures, violations }
}

interface Found {
  readonly writes: number
  readonly kept: number
  readonly effects: number
  readonly records: number
  readonly dead: number
  readonly bytesAtHalf: number
  readonly bytesAtEnd: number
}

function judge(found: Found, counts: Caller['counts'], options: PostgresSoakOptions): string[] {
  const { writes, kept, effects, records, dead, bytesAtHalf, bytesAtEnd } = found
  const faults: (readonly [boolean, string])[] = [
    [writes < options.writes, `only ${writes} writes`],
    [effects !== writes, `${effects} effects of ${writes} keys`],
    [records !== kept, `${records} records of ${kept} keys that are kept`],
    [counts.unknown > 0, `${counts.unknown} callers were told that nobody knows`],
    [dead >= MAX_DEAD, `${dead.toFixed(3)} dead records for each that lives`],
    [bytesAtEnd > bytesAtHalf * MAX_GROWTH, `${bytesAtHalf} bytes a record became ${bytesAtEnd}`],
  ]
  return faults.filter(([isFault]) => isFault).map(([, fault]) => fault)
}

/** Again while the database is stopped. */
async function tellWhen(isTime: () => boolean, look: () => Promise<number>): Promise<number> {
  for (;;) {
    await delay(200)
    if (!isTime()) continue
    try {
      return await look()
    } catch {
      // It is stopped just now.
    }
  }
}
