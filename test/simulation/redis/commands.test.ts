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
import { Keyspace, type Reply, ReplyError, runScript, Status, type Stored } from './commands.js'

// The simulated Redis beside a real one: the same scripts with the same arguments, drawn at random.

const ROUNDS = 3000
const LIST = ['version', 'entries', 'reasons', 'marks', 'receivers']
/** Both clocks run on while a command travels. */
const CLOSE_MS = 50

interface Step {
  readonly script: Script
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
}

it('does what a real Redis does', async () => {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const twin = new Keyspace()
  const random = new Random(7)
  const draw = drawer(random)
  const outcomes = new Set<string>()
  for (let round = 0; round < ROUNDS; round += 1) {
    const { script, keys, args } = draw(twin)
    while (keys.some((name) => isAboutToEnd(twin.values.get(name)))) await sleep(1)
    const { at, reply: real } = await evaluate(redis, { script, keys, args })
    twin.timeUs = at ?? twin.timeUs
    const texts = args.map((each) =>
      (typeof each === 'string' ? Buffer.from(each) : each).toString('latin1'),
    )
    const simulated = plain(runScript(twin, script.source, { names: keys, args: texts }))
    expect(simulated, `${script.source}\n${keys}\n${texts.join('\n')}`).toSatisfy((value) =>
      isClose(value, real),
    )
    outcomes.add(
      `${script.sha} ${String(JSON.stringify(Array.isArray(real) ? real[0] : real)).slice(0, 20)}`,
    )
    for (const name of keys) await compareAndCopy(redis, twin, name)
  }
  expect(outcomes.size).toBeGreaterThan(60)
}, 120_000)

/** Runs the script, and tells at which µs of the server's clock. A script that throws has no time. */
async function evaluate(
  redis: Redis,
  { script, keys, args }: Step,
): Promise<{ at?: number; reply: unknown }> {
  const timed = `local function body() ${script.source} end local time = redis.call('TIME') return { time, body() }`
  const client = redis as unknown as {
    evalBuffer(...words: unknown[]): Promise<[[Buffer, Buffer], unknown]>
  }
  try {
    const [[seconds, micros], reply = null] = await client.evalBuffer(
      timed,
      keys.length,
      ...keys,
      ...args,
    )
    return { at: Number(seconds) * 1e6 + Number(micros), reply: plainReal(reply) }
  } catch (error) {
    return { reply: errorText((error as Error).message) }
  }
}

const errorText = (message: string): string => `error ${message.split(' ')[0]}`

/** Draws steps for keys in every state. */
function drawer(random: Random): (twin: Keyspace) => Step {
  const ofKey = (script: Script, key: string, args: Step['args']): Step => ({
    script,
    keys: [key],
    args,
  })
  const onList = (script: Script, args: Step['args'] = []): Step => ({ script, keys: LIST, args })
  const target = (): string => random.pick(['x', 'y', 'z'])
  const second = (): string => random.pick(['-', '1', '1900000000', '1900000000.5'])
  return (twin) => {
    const key = random.pick(['a', 'b', 'c'])
    const leaseMs = random.pick([10, 60_000, 60_000])
    const retentionMs = random.pick([10, 600_000, 900_000])
    const run: Run = {
      recordId: key,
      leaseMs,
      retentionMs,
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
    return random.pick([
      () => ofKey(records.RESERVE, key, records.reserveArguments(request)),
      () => ofKey(records.RESERVE, key, records.reserveArguments(request)),
      () => ofKey(records.RENEW, key, records.renewArguments(run)),
      () => ofKey(records.SETTLE, key, records.settleArguments(run, ending)),
      () => ofKey(UNDO_RESERVE, key, undoArguments(request, random.pick([0, run.fence]))),
      () => ofKey(INSPECT, key, []),
      () =>
        ofKey(RESOLVE, key, [
          digestOf(random.chance(0.5) ? undefined : twin.values.get(key)),
          '1|f|5|1000|2|1|mef',
          random.pick(['10', '5000']),
        ]),
      () => ofKey(CONSUME, key, [random.pick(['n1', 'n2']), '10']),
      () =>
        onList(denylist.DENY, [
          random.uuid(),
          '3',
          target(),
          second(),
          second(),
          random.pick(['', 'why']),
        ]),
      () => onList(denylist.ALLOW, [random.uuid(), target(), '604800', '2']),
      () =>
        onList(denylist.REPORT, [
          target(),
          String(random.below(9)),
          '1800000000000000',
          '5000',
          'name',
        ]),
      () => onList(denylist.LEAVE, [target()]),
      () => onList(random.pick([denylist.POLL, denylist.READ_WITH_REASONS, denylist.RECEIVERS])),
    ])()
  }
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
  const ends = await redis.pexpiretime(name)
  const real = await read(redis, name, ends < 0 ? Number.POSITIVE_INFINITY : ends)
  const stored = twin.values.get(name)
  const lasts = (each: Stored | undefined): boolean => (each?.endsAt ?? 0) > Date.now() + CLOSE_MS
  if (lasts(real) || lasts(stored)) {
    expect(isClose(textOf(stored), textOf(real)), `${textOf(stored)} ${textOf(real)}`).toBe(true)
    expect(isSoonAfter(stored?.endsAt ?? 0, real?.endsAt ?? 0), name).toBe(true)
  }
  if (real === undefined) twin.values.delete(name)
  else twin.values.set(name, real)
}

const isSoonAfter = (one: number, other: number): boolean =>
  one === other || Math.abs(one - other) < CLOSE_MS

async function read(redis: Redis, name: string, endsAt: number): Promise<Stored | undefined> {
  switch (await redis.type(name)) {
    case 'string':
      return {
        type: 'string',
        value: ((await redis.getBuffer(name)) ?? Buffer.of()).toString('latin1'),
        endsAt,
      }
    case 'hash':
      return { type: 'hash', value: new Map(Object.entries(await redis.hgetall(name))), endsAt }
    default:
      return undefined
  }
}

const textOf = (stored: Stored | undefined): string =>
  stored?.type === 'string' ? stored.value : JSON.stringify([...(stored?.value ?? [])].sort())

/** Rows of a hash come in any order: sorted by their text without numbers, then by their numbers. */
function ordered(values: unknown[], isInner: boolean): unknown[] {
  if (!isInner && !values.every(Array.isArray)) return values
  const sortKey = (value: unknown): string =>
    `${JSON.stringify(value).replace(DIGITS, '')} ${JSON.stringify(value)}`
  return [...values].sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1))
}

const DIGITS = /\d+(\.\d+)?/g

function plain(reply: Reply, isInner = false): unknown {
  if (reply instanceof ReplyError) return errorText(reply.message)
  if (reply instanceof Status) return reply.text
  return Array.isArray(reply)
    ? ordered(
        reply.map((each) => plain(each, true)),
        isInner,
      )
    : reply
}

function plainReal(reply: unknown, isInner = false): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1')
  if (reply instanceof Error) return errorText(reply.message)
  return Array.isArray(reply)
    ? ordered(
        reply.map((each) => plainReal(each, true)),
        isInner,
      )
    : reply
}

/** Equal, but for times that differ by what a command takes. */
function isClose(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((each, index) => isClose(each, other[index]))
  }
  if (typeof one === 'number' && typeof other === 'number') return Math.abs(one - other) < CLOSE_MS
  if (typeof one !== 'string' || typeof other !== 'string') return one === other
  if (one.replace(DIGITS, '') !== other.replace(DIGITS, ''))
    return /^[0-9a-f]{40}$/.test(one) && /^[0-9a-f]{40}$/.test(other)
  const [numbers, others] = [one.match(DIGITS) ?? [], other.match(DIGITS) ?? []]
  return numbers.every((each, index) => Math.abs(Number(each) - Number(others[index])) < 1e6)
}
