import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ActionError } from '../../example-app/control-room/ports.js'
import { RECEIVERS } from '../../example-app/control-room/protocol.js'
import { openReceivers } from '../../example-app/control-room/receivers/open-receivers.js'
import { StartError } from '../../example-app/start-error.js'
import { freePort } from '../support/network/free-port.js'
import { until } from '../support/until.js'
import { type OpenRoom, openRoom, programs } from './receivers-room.js'

const TIMES = 3

function isRunning(pid: number | undefined): boolean {
  try {
    return process.kill(pid ?? 0, 0)
  } catch {
    return false
  }
}

describe('receivers whose room keeps the records', () => {
  let room: OpenRoom
  beforeAll(async () => {
    room = await openRoom()
  })
  beforeEach(() => Promise.all(RECEIVERS.map((name) => room.receivers.start(name))))
  afterAll(() => room.close())

  it('are killed and started again and again, at the same address', async () => {
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
})

it('receivers do not begin where the store, or a process, cannot serve', async () => {
  const listeners = { onReport() {}, onChange() {} }
  const nobody = 'http://127.0.0.1:2'
  const common = { coreUrl: nobody, issuer: nobody, apiKey: 'k', ...listeners }
  const redisUrl = `redis://127.0.0.1:${await freePort()}`
  await expect(openReceivers({ ...common, redisUrl })).rejects.toThrow(StartError)
  const broken = { ...(await programs()), receiver: '/nowhere/main.mjs' }
  await expect(openReceivers({ ...common, programs: broken })).rejects.toThrow(StartError)
})
