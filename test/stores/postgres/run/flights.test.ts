import { describe, expect, test } from 'vitest'
import { createFlights, type Flight } from '../../../../src/stores/postgres/run/flights.js'

const isSettled = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise.then(() => 'settled'), new Promise((r) => setImmediate(r))])) ===
  'settled'

describe('What is under way in a process', () => {
  test('is nothing at first', async () => {
    expect(await createFlights().running('key')).toBeUndefined()
  })

  test('is waited for until its handler runs, by equal requests and others', async () => {
    const flights = createFlights()
    const flight = flights.takeOff('key', 'lock')
    const asked = [flights.running('key'), flights.running('key')]
    expect(await isSettled(Promise.all(asked))).toBe(false)
    flight.run()
    const running = { requestLock: 'lock', isRunning: true } as Partial<Flight>
    for (const known of await Promise.all(asked)) expect(known).toMatchObject(running)
    expect(await flights.running('key')).toMatchObject(running)
    expect(await flights.running('another key')).toBeUndefined()
  })

  test('is nothing any more when it lands, whether its handler ran or not', async () => {
    const flights = createFlights()
    for (const hasRun of [true, false]) {
      const flight = flights.takeOff('key', 'lock')
      const asked = hasRun ? undefined : flights.running('key')
      if (hasRun) flight.run()
      flight.land()
      expect(await asked).toBeUndefined()
      expect(await flights.running('key')).toBeUndefined()
    }
  })

  test('of two that take off, the first is waited for, and the one that runs is known', async () => {
    const flights = createFlights()
    const first = flights.takeOff('key', 'first')
    const second = flights.takeOff('key', 'second')
    const asked = flights.running('key')
    second.run()
    expect(await isSettled(asked)).toBe(false)
    first.land()
    expect(await asked).toBeUndefined()
    second.land()
    expect(await flights.running('key')).toBeUndefined()
  })

  test('a flight that is not the known one takes nothing with it when it lands', async () => {
    const flights = createFlights()
    const first = flights.takeOff('key', 'first')
    const second = flights.takeOff('key', 'second')
    first.run()
    second.land()
    expect(await flights.running('key')).toMatchObject({ requestLock: 'first' })
    first.land()
    const third = flights.takeOff('key', 'third')
    const fourth = flights.takeOff('key', 'fourth')
    third.land()
    fourth.run()
    expect(await flights.running('key')).toMatchObject({ requestLock: 'fourth' })
    third.land()
    expect(await flights.running('key')).toMatchObject({ requestLock: 'fourth' })
  })
})
