import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listenTo, notify, openChannel, publish } from '../../../src/base/decision/observers.js'

describe('notify', () => {
  it('passes the event on', () => {
    const observe = vi.fn()
    const event = { type: 'swept' }
    notify(observe, event)
    expect(observe.mock.calls).toEqual([[event]])
  })

  it('ignores what an observer throws, and how its promise settles', async () => {
    notify(() => {
      throw new Error('of the observer')
    }, {})
    notify(() => Promise.reject(new Error('of the observer')), {})
    // An unhandled rejection would fail the run.
    await turn()
  })
})

describe('publish', () => {
  const channel = openChannel('postgres')

  it('creates no event without subscribers', () => {
    const create = vi.fn(() => ({}))
    publish(channel, create)
    expect(create).not.toHaveBeenCalled()
  })

  it('publishes the event frozen', () => {
    const events: unknown[] = []
    const listen = (event: unknown) => void events.push(event)
    subscribe('express-service-auth:postgres', listen)
    onTestFinished(() => void unsubscribe('express-service-auth:postgres', listen))
    publish(channel, () => ({ deleted: 1 }))
    expect(events).toEqual([{ deleted: 1 }])
    expect(Object.isFrozen(events[0])).toBe(true)
  })
})

describe('listenTo', () => {
  it('ignores the errors of a listener, and stops as often as it is told', () => {
    const listener = vi.fn(() => {
      throw new Error('of the listener')
    })
    const stop = listenTo('postgres', listener)
    publish(openChannel('postgres'), () => ({ deleted: 1 }))
    stop()
    stop()
    publish(openChannel('postgres'), () => ({ deleted: 2 }))
    expect(listener.mock.calls).toEqual([[{ deleted: 1 }]])
  })
})
