import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { Sender } from '../../src/held-response/sender.js'

const made = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()))

describe('Sender', () => {
  it('sends by the functions as they were found, and knows while it does', () => {
    const response = made()
    const seen: boolean[] = []
    const { writeHead, flushHeaders, write, destroy, emit } = response
    const end = (() => {
      seen.push(sender.isSending)
      return response
    }) as typeof response.end
    const sender = new Sender(response, { writeHead, flushHeaders, write, end, destroy, emit })
    response.end = () => response
    sender.send('end', [])
    expect([...seen, sender.isSending]).toEqual([true, false])
  })

  it('sends whether what it waits for succeeds or fails', async () => {
    const response = made()
    const sender = new Sender(response, response)
    await new Promise<void>((resolve) => sender.after(Promise.resolve(), resolve))
    await new Promise<void>((resolve) => sender.after(Promise.reject(new Error('x')), resolve))
  })

  it('destroys the response, and nothing else, when sending fails', async () => {
    const response = made()
    const destroyed = new Promise<void>((resolve) => {
      response.destroy = vi.fn(() => {
        resolve()
        return response
      })
    })
    const sender = new Sender(response, response)
    sender.after(Promise.resolve(), () => {
      throw new Error('an outer middleware')
    })
    await destroyed
    expect(sender.isSending).toBe(false)
  })
})
