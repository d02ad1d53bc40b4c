import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ActionError } from '../../example-app/control-room/ports.js'
import { RECEIVERS } from '../../example-app/control-room/protocol.js'
import { openReceivers } from '../../example-app/control-room/receivers/open-receivers.js'
import { StartError } from '../../example-app/start-error.js'
import { freePort } from '../support/network/free-port.js'
import { launch } from '../support/process/launch.js'
import { serve } from '../support/receiver/serve.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'
import { type OpenRoom, openRoom, programs } from './receivers-room.js'

const TIMES = 10
/** Each start compiles nothing, and yet takes seconds on a busy machine. */
const PATIENCE_MS = 180_000

function isRunning(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0)
  } catch {
    return false
  }
}

const areGone = (pids: readonly (number | undefined)[]) => async () => !pids.some(isRunning)

describe('receivers whose room keeps the records', () => {
  let room: OpenRoom
  beforeAll(async () => {
    room = await openRoom()
  })
  beforeEach(() => Promise.all(RECEIVERS.map((name) => room.receivers.start(name))))
  afterAll(() => room.close())

  it('are killed and started again and again, at the same address', {
    timeout: PATIENCE_MS,
  }, async () => {
    const { receivers } = room
    const url = receivers.urlOf('orders-1')
    const pids = new Set<number | undefined>()
    for (let time = 0; time < TIMES; time += 1) {
      const pid = room.stateOf('orders-1')?.pid
      pids.add(pid)
      await Promise.all([receivers.kill('orders-1'), receivers.kill('orders-1')])
      expect(isRunning(pid)).toBe(false)
      expect(room.stateOf('orders-1')).toMatchObject({ phase: 'killed', url })
      expect(await room.read('orders-1')).toMatchObject({ status: undefined })
      await Promise.all([receivers.start('orders-1'), receivers.start('orders-1')])
      expect(room.stateOf('orders-1')).toMatchObject({ phase: 'ready', url })
      expect(await room.read('orders-1')).toMatchObject({ status: 200 })
    }
    expect(pids.size).toBe(TIMES)
    expect(room.stateOf('orders-1')?.keySetLine.map(({ state }) => state)).toContain('cold')
  })

  it('are started while they are still being killed', async () => {
    const { receivers } = room
    const killed = receivers.kill('orders-2')
    const started = receivers.start('orders-2')
    await Promise.all([killed, started])
    expect(await room.read('orders-2')).toMatchObject({ status: 200 })
  })

  it('say so when their port was taken meanwhile', async () => {
    const { receivers } = room
    await receivers.kill('orders-2')
    const other = await serve((_req, res) => void res.end(), {
      port: Number(new URL(receivers.urlOf('orders-2')).port),
    })
    const inVain = receivers.start('orders-2')
    inVain.catch(() => undefined)
    expect(room.stateOf('orders-2')?.phase).toBe('starting')
    await expect(inVain).rejects.toThrow(/^orders-2 cannot serve: port \d+ is in use/)
    await expect(inVain).rejects.toThrow(ActionError)
    await other.close()
    await until('it is gone', async () => room.stateOf('orders-2')?.phase === 'killed')
    await receivers.start('orders-2')
    expect(await room.read('orders-2')).toMatchObject({ status: 200 })
  })

  it('are seen as killed when they die by themselves', async () => {
    const pid = room.stateOf('orders-2')?.pid ?? 0
    // Of a Ctrl-C the room itself takes care.
    process.kill(pid, 'SIGINT')
    expect(await room.read('orders-2')).toMatchObject({ status: 200 })
    process.kill(pid, 'SIGTERM')
    await until('it is gone', async () => room.stateOf('orders-2')?.phase === 'killed')
    expect(room.stateOf('orders-2')?.pid).toBeUndefined()
    await expect(room.receivers.holdNextWrite('orders-2', true)).rejects.toThrow(ActionError)
    await room.receivers.start('orders-2')
    expect(await room.read('orders-2')).toMatchObject({ status: 200 })
  })

  it('say what a visitor can put right', async () => {
    const { receivers } = room
    const thing = { kind: 'caller', value: 'billing' } as const
    const write = { record: 'r', fence: 1, as: 'done' } as const
    const wrong = [
      () => receivers.kill('orders-3' as never),
      () => receivers.start('__proto__' as never),
      () => receivers.holdNextWrite('orders-3' as never, true),
      () => receivers.deny({ ...thing, reason: '' }),
      () => receivers.deny({ ...thing, value: 'x'.repeat(257), reason: 'r' }),
      () => receivers.deny({ ...thing, reason: 'r', seconds: 0 }),
      () => receivers.deny({ ...thing, reason: 'r', seconds: Number.NaN }),
      () => receivers.deny({ ...thing, reason: 'r', seconds: 2_592_001 }),
      () => receivers.deny({ ...thing, kind: 'issued-before' as never, reason: 'r' }),
      () => receivers.allow({ kind: 'caller', value: '' }),
      () => receivers.settle({ ...write, status: 99 }),
      () => receivers.settle({ ...write, status: 204, body: '{}' }),
      () => receivers.settle({ ...write, status: 200, body: '{' }),
      () => receivers.settle({ ...write }),
      () => receivers.settle({ ...write, as: 'undone' as never }),
    ]
    for (const act of wrong) await expect(act()).rejects.toThrow(ActionError)
    const unknown = { record: 'r', fence: 1, as: 'freed' } as const
    expect(await receivers.settle(unknown)).toMatchObject({ isSettled: false })
    expect(room.stateOf('orders-1')?.phase).toBe('ready')
  })

  it('count every request, also of a caller that hangs up', async () => {
    const sent = 400
    const ends = () => room.requests().filter(({ call }) => call === 'counted')
    for (let batch = 0; batch < sent / 40; batch += 1) {
      const reads = Array.from({ length: 40 }, () => room.read('orders-1', { call: 'counted' }))
      await Promise.all(reads)
    }
    await room.receivers.holdNextWrite('orders-1', true)
    const cut = new AbortController()
    const request = { ...(await room.writeRequest({ call: 'counted' })), signal: cut.signal }
    const answer = fetch(`${room.receivers.urlOf('orders-1')}/orders`, request)
    await until('a write is held', async () => room.stateOf('orders-1')?.heldWrites === 1)
    cut.abort()
    await expect(answer).rejects.toThrow()
    await until('all are told', async () => ends().length > sent)
    await delay(200)
    const outcomes = ends().map(({ outcome }) => outcome)
    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(sent)
    expect(outcomes.filter((outcome) => outcome !== 'accepted')).toEqual(['failed'])
    await room.receivers.letGo('orders-1')
  })
})

describe.concurrent('receivers and their room', () => {
  it('end together', async () => {
    const room = await openRoom()
    const pids = room.receivers.states().map(({ pid }) => pid)
    expect(pids.every(isRunning)).toBe(true)
    await room.close()
    expect(pids.some(isRunning)).toBe(false)
  })

  it('end together when the room is killed', async () => {
    const { receiver, answer } = await programs()
    const program = new URL('receivers-parent.ts', import.meta.url)
    const parent = await launch<number[]>(program, { args: [receiver, answer] })
    expect(parent.greeting.every(isRunning)).toBe(true)
    await parent.kill()
    await until('its receivers are gone', areGone(parent.greeting))
  })

  it('do not begin where the store, or a process, cannot serve', async () => {
    const listeners = { onReport() {}, onChange() {} }
    const nobody = 'http://127.0.0.1:2'
    const common = { coreUrl: nobody, issuer: nobody, apiKey: 'k', ...listeners }
    const redisUrl = `redis://127.0.0.1:${await freePort()}`
    await expect(openReceivers({ ...common, redisUrl })).rejects.toThrow(StartError)
    const broken = { ...(await programs()), receiver: '/nowhere/main.mjs' }
    await expect(openReceivers({ ...common, programs: broken })).rejects.toThrow(StartError)
  })
})

describe('receivers whose Redis comes and goes', () => {
  let redis: RedisServer
  let room: OpenRoom
  beforeAll(async () => {
    redis = await startRedis()
    room = await openRoom(redis.url)
  })
  afterAll(async () => {
    await room.close()
    await redis.stop()
  })
  const stateOfStore = () => room.receivers.store.health().state
  const isBack = async () => (await room.write('orders-1')).status === 201

  it('answer 503 without it, and come back by themselves', async () => {
    expect(await room.write('orders-1')).toMatchObject({ status: 201 })
    await redis.kill()
    expect(await room.write('orders-1', { call: 'undecided' })).toMatchObject({ status: 503 })
    await until('it shows', async () => stateOfStore() === 'down')
    await until('it shows', async () => room.stateOf('orders-1')?.store?.state === 'down')
    const thing = { kind: 'caller', value: 'reporting' } as const
    await expect(room.receivers.deny({ ...thing, reason: 'r' })).rejects.toThrow(ActionError)
    await room.receivers.kill('orders-2')
    await room.receivers.start('orders-2')
    expect(await room.read('orders-2')).toMatchObject({ status: 503 })

    const ends = () => room.requests().filter(({ call }) => call === 'undecided')
    await until('it is told', async () => ends().length > 0)
    expect(ends()).toMatchObject([{ outcome: 'undecided' }])

    await redis.restart()
    await until('it is back', isBack)
    await until('it shows', async () => stateOfStore() === 'up')
    await until('orders-2 is back', async () => (await room.read('orders-2')).status === 200)
  })

  it('keep what was denied when it has lost everything', async () => {
    const { receivers } = room
    await receivers.deny({ kind: 'caller', value: 'reporting', reason: 'stolen' })
    const denial = () => receivers.denied().find(({ value }) => value === 'reporting')
    const appliedBy = () => Object.keys(denial()?.appliedAfter ?? {})
    await until('both apply it', async () => appliedBy().length === 2)
    await redis.restart({ keepData: false })
    await until('it shows', async () => room.stateOf('orders-1')?.denylist?.regressed === true)
    expect(await room.read('orders-1', { caller: 'reporting' })).toMatchObject({ status: 403 })
    expect(denial()).toMatchObject({ reason: 'stolen' })
    // Whoever starts now has never heard of it.
    await receivers.kill('orders-2')
    await receivers.start('orders-2')
    expect(appliedBy()).toEqual(['orders-1'])
    await receivers.deny({ kind: 'caller', value: 'reporting', reason: 'stolen' })
    await until('both apply it', async () => appliedBy().length === 2)
    await receivers.allow({ kind: 'caller', value: 'reporting' })
    await until('it is allowed', async () => {
      const { status } = await room.read('orders-1', { caller: 'reporting' })
      return status === 200
    })
  })
})
