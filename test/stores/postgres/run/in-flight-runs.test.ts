import { describe, expect, test } from 'vitest'
import { createFlights } from '../../../../src/stores/postgres/run/create-run.js'

const isSettled = async (promise: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([promise.then(() => 'settled'), new Promise((r) => setImmediate(r))])) ===
  'settled'

describe('What is under way in a process', () => {
  test('is nothing at first', async () => {
    expect(await createFlights().isRunning('key')).toBe(false)
  })

  test('is waited for until its handler runs, by equal requests and others', async () => {
    const flights = createFlights()
    const flight = flights.takeOff('key')
    const asked = [flights.isRunning('key'), flights.isRunning('key')]
    expect(await isSettled(Promise.all(asked))).toBe(false)
    flight.run()
    expect(await Promise.all(asked)).toEqual([true, true])
    expect(await flights.isRunning('key')).toBe(true)
    expect(await flights.isRunning('another key')).toBe(false)
  })

  test('is nothing any more when it lands, whether its handler ran or not', async () => {
    const flights = createFlights()
    for (const hasRun of [true, false]) {
      const flight = flights.takeOff('key')
      const asked = hasRun ? undefined : flights.isRunning('key')
      if (hasRun) flight.run()
      flight.land()
      expect(await asked).toBe(hasRun ? undefined : false)
      expect(await flights.isRunning('key')).toBe(false)
    }
  })

  test('of two that take off, the first is waited for, and the one that runs is known', async () => {
    const flights = createFlights()
    const first = flights.takeOff('key')
    const second = flights.takeOff('key')
    const asked = flights.isRunning('key')
    second.run()
    expect(await isSettled(asked)).toBe(false)
    first.land()
    expect(await asked).toBe(false)
    second.land()
    expect(await flights.isRunning('key')).toBe(false)
  })

  test('a flight that is not the known one takes nothing with it when it lands', async () => {
    const flights = createFlights()
    const first = flights.takeOff('key')
    const second = flights.takeOff('key')
    first.run()
    second.land()
    expect(await flights.isRunning('key')).toBe(true)
    first.land()
    const third = flights.takeOff('key')
    const fourth = flights.takeOff('key')
    third.land()
    fourth.run()
    expect(await flights.isRunning('key')).toBe(true)
    third.land()
    expect(await flights.isRunning('key')).toBe(true)
  })
})
