import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import {
  type BackgroundLoad,
  openBackgroundLoad,
} from '../../example-app/control-room/calls/background-load.js'
import { createPace } from '../../example-app/control-room/calls/pace.js'
import { GOOD_READ } from '../../example-app/control-room/page/compose/good-calls.js'
import type { EndedRequest } from '../../example-app/control-room/ports.js'
import type { Outcome } from '../../example-app/control-room/protocol.js'
import { until } from '../support/until.js'
import { API_KEY, CERTIFICATE, openRoomHere, type RoomHere } from './calls-kit.js'

let room: RoomHere
let load: BackgroundLoad
let ended: EndedRequest[] = []
const warnings: Error[] = []
const onWarning = (warning: Error) => warnings.push(warning)

const mintOf = ({ core }: RoomHere) => ({
  coreUrl: core.url,
  issuer: core.issuer,
  apiKey: API_KEY,
  certificate: CERTIFICATE,
})

beforeAll(async () => {
  process.on('warning', onWarning)
  room = await openRoomHere({ onReport: ({ requests }) => ended.push(...requests) })
  load = openBackgroundLoad({
    mint: mintOf(room),
    receivers: room.receivers,
    // However busy the machine is, no call is cut: each of them must be answered.
    callLimitMs: 30_000,
    stopLimitMs: 30_000,
  })
})
afterAll(async () => {
  process.off('warning', onWarning)
  await load.close()
  await room.close()
})

const count = (outcome: Outcome) => ended.filter((request) => request.outcome === outcome).length

it('sends accepted, replayed and refused calls to both receivers, and stops exactly', async () => {
  ended = []
  const before = room.receivers.requests()
  const orders = room.receivers.orders()
  expect(await load.set({ callsPerSecond: 200 })).toEqual({})
  expect(load.rate()).toBe(200)
  await until('all kinds', async () => count('replayed') > 2 && count('refused') > 4)
  expect(await load.set({ callsPerSecond: 0 })).toEqual({})
  expect(load.rate()).toBe(0)
  const seen = room.receivers.requests()
  await delay(100)
  expect(room.receivers.requests()).toBe(seen)
  await until('the end of all', async () => ended.length === seen - before)
  expect(count('failed')).toBe(0)
  expect(count('accepted')).toBeGreaterThan(count('refused'))
  expect(new Set(ended.map(({ receiver }) => receiver)).size).toBe(2)
  expect(room.receivers.orders() - orders).toBe(1)
})

it('sends nothing after changes that overlap, the last of which is 0', async () => {
  await Promise.all([100, 300, 0].map((callsPerSecond) => load.set({ callsPerSecond })))
  const seen = room.receivers.requests()
  await delay(100)
  expect(room.receivers.requests()).toBe(seen)
})

it('piles nothing up before a receiver that is silent', async () => {
  let connections = 0
  const server = createServer(() => {
    connections += 1
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const silent = openBackgroundLoad({
    mint: mintOf(room),
    receivers: { states: room.receivers.states, urlOf: () => url },
  })
  await silent.set({ callsPerSecond: 500 })
  await until('connections', async () => connections > 0)
  await delay(300)
  expect(connections).toBeLessThanOrEqual(16)
  const startedAt = performance.now()
  await silent.close()
  expect(performance.now() - startedAt).toBeLessThan(5000)
  expect(warnings).toEqual([])
})

it('goes on reading with another token when the core takes the key back', async () => {
  await load.set({ callsPerSecond: 100 })
  ended = []
  await until('reads', async () => count('accepted') > 3)
  const keys = room.core.keys().filter(({ kind }) => kind === 'dynamic')
  await Promise.all(keys.map(({ kid }) => room.core.withdraw(kid)))
  // An unknown key makes the receivers fetch, and so forget the old one.
  await room.callers.call({ ...GOOD_READ, hostileToken: 'kid "0"' })
  await room.callers.call({ ...GOOD_READ, receiver: 'orders-2', hostileToken: 'kid "0"' })
  ended = []
  await until('reads again', async () => count('accepted') > 20)
  await load.set({ callsPerSecond: 0 })
})

it('leaves a killed receiver out', async () => {
  await room.receivers.stop('orders-2')
  await delay(50)
  ended = []
  await load.set({ callsPerSecond: 100 })
  await until('calls', async () => ended.length > 5)
  await load.set({ callsPerSecond: 0 })
  expect(new Set(ended.map(({ receiver }) => receiver))).toEqual(new Set(['orders-1']))
})

it.each([{ callsPerSecond: 501 }, { callsPerSecond: -1 }, { callsPerSecond: 1.5 }, {}, null])(
  'refuses %j',
  async (input) => {
    await expect(load.set(input)).rejects.toMatchObject({ name: 'ActionError' })
  },
)

it('keeps an exact pace, and makes no long pause up', () => {
  const pace = createPace(300, 0)
  let calls = 0
  for (let now = 7; now <= 1000; now += 7) calls += pace.due(now)
  expect(calls).toBe(298)
  expect(pace.due(60_000)).toBe(30)
})
