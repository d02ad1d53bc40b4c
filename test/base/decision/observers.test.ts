import { describe, expect, it, vi } from 'vitest'
import { listenTo, openChannel, publish } from '../../../src/base/decision/observers.js'

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
