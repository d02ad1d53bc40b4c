import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RECEIVERS } from '../../example-app/control-room/protocol.js'
import { until } from '../support/until.js'
import { type OpenRoom, openRoom } from './receivers-room.js'

const IN_PROGRESS = 'urn:express-service-auth:request-in-progress'
const UNKNOWN = 'urn:express-service-auth:outcome-unknown'

// The tests of the page have receivers on Redis.
describe('two receivers on the store of their room', () => {
  let room: OpenRoom
  beforeAll(async () => {
    room = await openRoom()
  })
  beforeEach(() => Promise.all(RECEIVERS.map((name) => room.receivers.start(name))))
  afterAll(() => room?.close())

  const writeOf = (state: string) =>
    room.receivers.writes().find(({ view }) => view?.state === state)

  /** A write of which the order is on the books, and its receiver gone before its answer. */
  async function killedWrite(key: string) {
    const { receivers } = room
    await receivers.holdNextWrite('orders-1', true)
    const answer = room.write('orders-1', { key })
    await until('a write is held', async () => room.stateOf('orders-1')?.heldWrites === 1)
    expect(room.stateOf('orders-1')?.isHoldingNextWrite).toBe(false)
    await receivers.kill('orders-1')
    expect(await answer).toMatchObject({ status: undefined })
    expect(room.stateOf('orders-1')).toMatchObject({ phase: 'killed', heldWrites: 0 })
    await until('it is seen as running', async () => writeOf('running') !== undefined)
    expect(await room.write('orders-2', { key })).toMatchObject({ status: 409, type: IN_PROGRESS })
    await until('its lease has run out', async () => writeOf('abandoned') !== undefined)
    expect(await room.write('orders-2', { key })).toMatchObject({ status: 409, type: UNKNOWN })
    await receivers.start('orders-1')
    const { record = '', view } = writeOf('abandoned') ?? {}
    return { record, fence: view?.fence ?? 0 }
  }

  it('a key is run by one of them, and answered by both', async () => {
    const before = room.receivers.orders()
    const key = randomUUID()
    const first = await room.write('orders-1', { key, call: key })
    const retry = await room.write('orders-2', { key, call: key })
    expect(first).toMatchObject({ status: 201, isReplay: false })
    expect(retry).toEqual({ ...first, isReplay: true })
    expect(room.receivers.orders()).toBe(before + 1)
    const ends = () => room.requests().filter(({ call }) => call === key)
    await until('both have ended', async () => ends().length === 2)
    expect(new Set(ends().map(({ outcome }) => outcome))).toEqual(new Set(['accepted', 'replayed']))
    await until('its record is read', async () => writeOf('finished') !== undefined)
    for (const name of RECEIVERS) expect(await room.read(name)).toMatchObject({ status: 200 })
  })

  it('a write of a killed receiver that is settled as done is answered so, and not run again', async () => {
    const before = room.receivers.orders()
    const key = randomUUID()
    const found = await killedWrite(key)
    const done = { as: 'done', status: 201, body: '{"by":"hand"}' } as const
    expect(
      await room.receivers.settle({ ...found, ...done, fence: found.fence + 1 }),
    ).toMatchObject({
      isSettled: false,
    })
    expect(await room.receivers.settle({ ...found, ...done })).toEqual({ isSettled: true })
    expect(await room.receivers.settle({ ...found, ...done })).toMatchObject({ isSettled: false })
    for (const name of RECEIVERS) {
      const text = '{"by":"hand"}'
      expect(await room.write(name, { key })).toMatchObject({ status: 201, text, isReplay: true })
    }
    expect(room.receivers.orders()).toBe(before + 1)
  })

  it('each call has its own events and one end, however many are under way', async () => {
    const calls = Array.from({ length: 60 }, (_, index) => `c-${index}`)
    await Promise.all(
      calls.map((call, index) => {
        const name = RECEIVERS[index % 2] ?? 'orders-1'
        if (index % 3 === 0) return room.read(name, { call, caller: 'shipping' })
        return index % 3 === 1 ? room.read(name, { call }) : room.write(name, { call })
      }),
    )
    const endsOf = (call: string) => room.requests().filter((request) => request.call === call)
    await until('all have ended', async () => calls.every((call) => endsOf(call).length > 0))
    for (const [index, call] of calls.entries()) {
      const receiver = RECEIVERS[index % 2]
      const outcome = index % 3 === 0 ? 'refused' : 'accepted'
      expect(endsOf(call)).toMatchObject([{ receiver, outcome }])
      const events = room.events().filter((event) => event.call === call)
      const titles = events.map(({ channel, title }) => `${channel} ${title}`)
      expect(titles).toEqual(TITLES[index % 3])
      expect(new Set(events.map((event) => event.receiver))).toEqual(new Set([receiver]))
    }
  })
})

const TITLES = [
  ['decision caller_not_approved'],
  ['decision accepted', 'decision accepted'],
  [
    ...Array.from({ length: 3 }, () => 'decision accepted'),
    'idempotency reserved',
    'idempotency result_kept',
  ],
]
