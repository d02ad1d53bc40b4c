import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import {
  type BackgroundLoad,
  openBackgroundLoad,
} from '../../example-app/control-room/calls/background-load.js'
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

it('leaves a killed receiver out', async () => {
  await room.receivers.stop('orders-2')
  await delay(50)
  ended = []
  await load.set({ callsPerSecond: 100 })
  await until('calls', async () => ended.length > 5)
  await load.set({ callsPerSecond: 0 })
  expect(new Set(ended.map(({ receiver }) => receiver))).toEqual(new Set(['orders-1']))
})
