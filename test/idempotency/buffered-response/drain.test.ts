import { EventEmitter, once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { watchDrain } from '../../../src/idempotency/buffered-response/buffer-response.js'

const made = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))

describe('watchDrain', () => {
  it('wakes those who wait for the response', async () => {
    const response = made()
    const drain = watchDrain(response)
    const woken = once(response, 'drain')
    drain.emitDrain()
    await woken
  })

  it('wakes those whom an outer middleware has taken to a stream of its own, once', () => {
    const response = made()
    const stream = new EventEmitter()
    const own = response.on
    response.on = ((name: string, listener: () => void) =>
      name === 'drain'
        ? stream.on(name, listener)
        : Reflect.apply(own, response, [name, listener])) as typeof own
    const outer = response.on
    const calls: string[] = []
    Reflect.apply(own, response, ['drain', () => calls.push('outer')])

    const drain = watchDrain(response)
    response.on('drain', () => calls.push('handler'))
    response.once('drain', () => calls.push('once'))
    response.on('close', () => calls.push('close'))
    drain.stop()
    drain.emitDrain()
    expect(calls).toEqual(['outer', 'handler', 'once'])
    expect(response.on).toBe(outer)
  })

  it('leaves what an inner middleware has put before it, and then notes nobody any more', () => {
    const response = made()
    const stream = new EventEmitter()
    response.on = stream.on.bind(stream) as unknown as typeof response.on
    const drain = watchDrain(response)
    const { on } = response
    const inner = ((...args: [string, () => void]) =>
      Reflect.apply(on, response, args)) as typeof on
    response.on = inner
    drain.stop()
    expect(response.on).toBe(inner)
    const calls = vi.fn()
    response.on('drain', calls)
    drain.emitDrain()
    expect(calls).not.toHaveBeenCalled()
  })

  it.each<[string, (listener: () => void) => () => void]>([
    ['wraps listeners, as context managers do', (listener) => () => listener()],
    ['only listens in', (listener) => listener],
  ])('calls nobody twice where an outer middleware %s', (_what, passedOn) => {
    const response = made()
    const own = response.on
    response.on = ((name: string, listener: () => void) =>
      Reflect.apply(own, response, [name, passedOn(listener)])) as typeof own
    const drain = watchDrain(response)
    const calls = vi.fn()
    response.on('drain', calls)
    drain.emitDrain()
    expect(calls).toHaveBeenCalledOnce()
  })
})
