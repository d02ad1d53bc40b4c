import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestIssuer } from '../../../support/issuer/test-issuer.js'
import { OUTAGES, type Outage, type TcpProxy } from '../../../support/network/tcp-proxy.js'
import { launch } from '../../../support/process/launch.js'
import { ownRedis, proxyOf } from '../kit.js'
import { entryOf, openDenylist, refuses, untilRefused, untilState } from './denylist-kit.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

/** Longer than `pollMs` plus a second. */
const FROZEN_MS = 1600
const CALLERS = 4
const REFUSED = Array(CALLERS).fill(403)
/** On a busy machine Redis may take longer to answer than a decision waits; then the list counts as before. */
const MOST_THAWS = 6

interface Freeze {
  before?(proxy: TcpProxy): unknown
  during?(proxy: TcpProxy): unknown
}

/** How a receiver answers right after a thaw, when its caller was denied meanwhile. */
async function answersAfterThaw({ before, during }: Freeze): Promise<number[]> {
  const server = await ownRedis()
  const proxy = await proxyOf(server)
  const desk = openDenylist(server)
  const { child, greeting, kill } = await launch<{ port: number }>(
    new URL('./frozen.child.ts', import.meta.url),
    { env: { ISSUER: issuer.url, REDIS_PORT: String(proxy.port) } },
  )
  onTestFinished(kill)
  const token = issuer.token()
  const call = async (): Promise<number> => {
    const headers = { Authorization: `Bearer ${token}` }
    return (await fetch(`http://127.0.0.1:${greeting.port}`, { headers })).status
  }
  const target = { issuer: issuer.url, kind: 'caller', value: 'billing' } as const
  let answers: number[] = []
  for (let thaws = 0; thaws < MOST_THAWS && !isDeepStrictEqual(answers, REFUSED); thaws++) {
    await vi.waitFor(async () => expect(await call()).toBe(204), { timeout: 20_000 })
    await before?.(proxy)
    child.kill('SIGSTOP')
    await sleep(FROZEN_MS / 2)
    await desk.deny(entryOf(target))
    await during?.(proxy)
    await sleep(FROZEN_MS / 2)
    // The kernel accepts them, and the process finds them when it wakes.
    const calls = Array.from({ length: CALLERS }, call)
    await sleep(50)
    child.kill('SIGCONT')
    answers = await Promise.all(calls)
    await desk.allow(target)
  }
  return answers
}

const FREEZES: Record<string, Freeze> = {
  'between two polls': {},
  'while a poll was under way, whose reply is from before': {
    async before(proxy) {
      proxy.delayReplies(200)
      await sleep(250)
    },
    during: (proxy) => proxy.delayReplies(0),
  },
  'and its connection was closed meanwhile': { during: (proxy) => proxy.cut() },
  'and its connection is dead without a sign': {
    async during(proxy) {
      await proxy.fail('accepted and silent for good')
      await proxy.restore()
    },
  },
}

it('a receiver that was frozen refuses who was denied meanwhile', async () => {
  // At the same time, because each waits most of the time.
  const answers = await Promise.all(
    Object.entries(FREEZES).map(async ([name, freeze]) => [name, await answersAfterThaw(freeze)]),
  )
  const expected = Object.keys(FREEZES).map((name) => [name, REFUSED])
  expect(Object.fromEntries(answers)).toEqual(Object.fromEntries(expected))
})

/** How many of the decisions in an outage would wait. */
async function waitsIn(outage: Outage): Promise<number> {
  const proxy = await proxyOf(await ownRedis())
  const receiver = openDenylist(proxy)
  await receiver.ready()
  await proxy.fail(outage)
  await untilState(receiver, 'stale')
  const end = performance.now() + 2500
  let waits = 0
  while (performance.now() < end) {
    if (receiver.catchUp?.() !== undefined) waits += 1
    await sleep(5)
  }
  return waits
}

describe('catchUp', () => {
  it('waits for a poll after the wall clock has jumped: the machine may have slept', async () => {
    const server = await ownRedis()
    const [receiver, desk] = [openDenylist(server), openDenylist(server)]
    await receiver.ready()
    expect(receiver.catchUp?.()).toBeUndefined()
    const trueNow = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + 60_000)
    onTestFinished(() => void vi.restoreAllMocks())
    const caughtUp = receiver.catchUp?.()
    expect(receiver.catchUp?.()).toBe(caughtUp)
    await caughtUp
    vi.restoreAllMocks()
    await desk.deny(entryOf({ value: 'late' }))
    vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + 120_000)
    await receiver.catchUp?.()
    expect(refuses(receiver, 'late')).toBe(true)
    expect(receiver.catchUp?.()).toBeUndefined()
  })

  it('costs no decision anything in an outage', async () => {
    const waits = await Promise.all(OUTAGES.map(async (outage) => [outage, await waitsIn(outage)]))
    expect(waits).toEqual(OUTAGES.map((outage) => [outage, 0]))
  })

  it('settles after timeoutMs if Redis cannot be asked, and the list counts as before', async () => {
    const server = await ownRedis()
    const proxy = await proxyOf(server)
    const receiver = openDenylist(proxy)
    const desk = openDenylist(server)
    await desk.deny(entryOf({ value: 'early' }))
    await receiver.ready()
    await untilRefused(receiver, 'early')
    await proxy.fail('accepted and silent for good')
    const trueNow = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => trueNow() + 60_000)
    onTestFinished(() => void vi.restoreAllMocks())
    const startedAt = performance.now()
    await receiver.catchUp?.()
    expect(performance.now() - startedAt).toBeGreaterThan(100)
    expect(performance.now() - startedAt).toBeLessThan(450)
    expect(refuses(receiver, 'early')).toBe(true)
    expect(receiver.catchUp?.()).toBeUndefined()
  })

  it('is not needed before the first poll, nor once it is closed', async () => {
    const server = await ownRedis()
    const receiver = openDenylist(server)
    expect(receiver.catchUp?.()).toBeUndefined()
    await receiver.ready()
    receiver.close()
    await sleep(1500)
    expect(receiver.catchUp?.()).toBeUndefined()
  })
})
