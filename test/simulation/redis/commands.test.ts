import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import type { Run } from '../../../src/idempotency/leased/idempotency-store.js'
import type { Script } from '../../../src/stores/redis/connection/client.js'
import * as denylist from '../../../src/stores/redis/denylist/scripts.js'
import { UNDO_RESERVE, undoArguments } from '../../../src/stores/redis/store/compensation.js'
import * as records from '../../../src/stores/redis/store/idempotency-scripts.js'
import { INSPECT, RESOLVE } from '../../../src/stores/redis/store/record-access.js'
import { CONSUME } from '../../../src/stores/redis/store/redis-store.js'
import { startRedis } from '../../support/redis/redis.js'
import { Random } from '../clock.js'
import { Keyspace, runScript, Status, type Stored } from './commands.js'

// The simulated Redis beside a real one: the same scripts with the same arguments, drawn at random.

const ROUNDS = 3000
const LIST = ['version', 'entries', 'reasons', 'marks', 'receivers']
/** Both clocks run on while a command travels. */
const CLOSE_MS = 50

type Step = readonly [script: Script, keys: readonly string[], args: readonly (string | Buffer)[]]

it('does what a real Redis does', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const twin = new Keyspace()
  const random = new Random(7)
  const outcomes = new Set<string>()
  for (let round = 0; round < ROUNDS; round += 1) {
    const [script, keys, args] = draw(random, twin)
    while (keys.some((name) => isAboutToEnd(twin.values.get(name)))) await sleep(1)
    const { at, real } = await evaluate(redis, [script, keys, args])
    twin.timeUs = at ?? twin.timeUs
    const texts = args.map((each) => Buffer.from(each as string).toString('latin1'))
    const simulated = plain(runScript(twin, script.source, { names: keys, args: texts }))
    const asked = `${script.source}\n${keys}\n${texts.join('\n')}`
    expect(simulated, asked).toSatisfy((value) => isClose(value, real))
    const [outcome] = [real].flat()
    outcomes.add(`${script.sha} ${String(JSON.stringify(outcome)).slice(0, 20)}`)
    for (const name of keys) await compareAndCopy(redis, twin, name)
  }
  expect(outcomes.size).toBeGreaterThan(60)
}, 120_000)

/** Runs the script, and tells at which µs of the server's clock. A script that throws has no time. */
async function evaluate(redis: Redis, [{ source }, keys, args]: Step) {
  const timed = `local function body() ${source} end local time = redis.call('TIME') return { time, body() }`
  try {
    const reply = await redis.callBuffer('EVAL', timed, keys.length, ...keys, ...args)
    const [[seconds, micros], real = null] = reply as [[Buffer, Buffer], unknown]
    return { at: Number(seconds) * 1e6 + Number(micros), real: plain(real) }
  } catch (error) {
    return { real: plain(error) }
  }
}

/** A step for a key in any state. */
function draw(random: Random, twin: Keyspace): Step {
  const key = random.pick(['a', 'b', 'c'])
  const run: Run = {
    recordId: key,
    leaseMs: random.pick([10, 60_000, 60_000]),
    retentionMs: random.pick([10, 600_000, 900_000]),
    owner: random.pick(['me', 'you']),
    fingerprint: random.pick(['f', 'f', 'f', 'g']),
    fence: Number(/^1\|.\|(\d+)/.exec(String(twin.values.get(key)?.value))?.[1] ?? 1),
  }
  const request = { ...run, rerunAbandoned: random.chance(0.5) }
  const ending = random.pick([
    { type: 'finished', result: Buffer.from([0x5b, 0xff, 0x0a]) },
    { type: 'not_stored' },
    { type: 'abandoned' },
    { type: 'abandoned' },
    { type: 'released' },
  ] as const)
  const known = digestOf(random.chance(0.5) ? undefined : twin.values.get(key))
  const target = random.pick(['x', 'y', 'z'])
  const second = (): string => random.pick(['-', '1', '1900000000', '1900000000.5'])
  const reason = random.pick(['', 'why'])
  const seen = String(random.below(9))
  return random.pick<Step>([
    [records.RESERVE, [key], records.reserveArguments(request)],
    [records.RESERVE, [key], records.reserveArguments(request)],
    [records.RENEW, [key], records.renewArguments(run)],
    [records.SETTLE, [key], records.settleArguments(run, ending)],
    [UNDO_RESERVE, [key], undoArguments(request, random.pick([0, run.fence]))],
    [INSPECT, [key], []],
    [RESOLVE, [key], [known, '1|f|5|1000|2|1|mef', random.pick(['10', '5000'])]],
    [CONSUME, [key], [random.pick(['n1', 'n2']), '10']],
    [denylist.DENY, LIST, [random.uuid(), '3', target, second(), second(), reason]],
    [denylist.ALLOW, LIST, [random.uuid(), target, '604800', '2']],
    [denylist.REPORT, LIST, [target, seen, '1800000000000000', '5000', 'name']],
    [denylist.LEAVE, LIST, [target]],
    [random.pick([denylist.POLL, denylist.READ_WITH_REASONS, denylist.RECEIVERS]), LIST, []],
  ])
}

const digestOf = (stored: Stored | undefined): string =>
  createHash('sha1')
    .update(stored?.type === 'string' ? stored.value : '', 'latin1')
    .digest('hex')

/** Whether the record or its lease ends while a command travels. */
function isAboutToEnd(stored: Stored | undefined): boolean {
  if (stored === undefined) return false
  const [, retentionMs = '0'] = /^1\|.\|\d+\|(\d+)/.exec(String(stored.value)) ?? []
  const isSoon = (at: number): boolean => Math.abs(at - Date.now() - 2) < 4
  return isSoon(stored.endsAt) || isSoon(stored.endsAt - Number(retentionMs))
}

/** Compares a key, then takes over what the real server has: times differ by microseconds, and must not add up. */
async function compareAndCopy(redis: Redis, twin: Keyspace, name: string): Promise<void> {
  const real = await read(redis, name)
  const stored = twin.values.get(name)
  const lasts = (each: Stored | undefined): boolean => (each?.endsAt ?? 0) > Date.now() + CLOSE_MS
  if (lasts(real) || lasts(stored))
    expect(partsOf(stored), name).toSatisfy((parts) => isClose(parts, partsOf(real)))
  if (real === undefined) twin.values.delete(name)
  else twin.values.set(name, real)
}

async function read(redis: Redis, name: string): Promise<Stored | undefined> {
  const ends = await redis.pexpiretime(name)
  const endsAt = ends < 0 ? Number.POSITIVE_INFINITY : ends
  switch (await redis.type(name)) {
    case 'string': {
      const value = await redis.getBuffer(name)
      // It may have ended since its type was asked.
      return value === null
        ? undefined
        : { type: 'string', value: value.toString('latin1'), endsAt }
    }
    case 'hash':
      return { type: 'hash', value: new Map(Object.entries(await redis.hgetall(name))), endsAt }
    default:
      return undefined
  }
}

const partsOf = (stored: Stored | undefined): unknown =>
  stored && [
    typeof stored.value === 'string' ? stored.value : [...stored.value].sort(),
    stored.endsAt,
  ]

/** Rows of a hash come in any order: sorted by their text without numbers, then by their numbers. */
function ordered(values: unknown[], isInner: boolean): unknown[] {
  if (!isInner && !values.every(Array.isArray)) return values
  const sortKey = (value: unknown): string =>
    `${JSON.stringify(value).replace(DIGITS, '')} ${JSON.stringify(value)}`
  return [...values].sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1))
}

const DIGITS = /\d+(\.\d+)?/g

/** A reply of either server. */
function plain(reply: unknown, isInner = false): unknown {
  if (reply instanceof Error) return `error ${reply.message.split(' ')[0]}`
  if (reply instanceof Status) return reply.text
  if (Buffer.isBuffer(reply)) return reply.toString('latin1')
  if (!Array.isArray(reply)) return reply
  const values = reply.map((each) => plain(each, true))
  return ordered(values, isInner)
}

/** Equal, but for times that differ by what a command takes. */
function isClose(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((each, index) => isClose(each, other[index]))
  if (typeof one === 'number' && typeof other === 'number') return Math.abs(one - other) < CLOSE_MS
  if (typeof one !== 'string' || typeof other !== 'string') return false
  if (one.replace(DIGITS, '') !== other.replace(DIGITS, ''))
    return /^[0-9a-f]{40}$/.test(one) && /^[0-9a-f]{40}$/.test(other)
  const [numbers, others] = [one.match(DIGITS) ?? [], other.match(DIGITS) ?? []]
  return numbers.every((each, index) => Math.abs(Number(each) - Number(others[index])) < 1e6)
}
