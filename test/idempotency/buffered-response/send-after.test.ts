import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  type Sender,
  sendAfter,
  sendByOriginal,
} from '../../../src/idempotency/buffered-response/original-functions.js'

const nothing = (): void => {}

function sendingWith(found: Partial<Sender['originals']>): Sender {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const ofHead = { setHeader: nothing, setHeaders: nothing, appendHeader: nothing }
  const ofBody = { flushHeaders: nothing, write: nothing, end: nothing, destroy: nothing }
  const none = { ...ofHead, removeHeader: nothing, writeHead: nothing, ...ofBody }
  return { response, originals: { ...none, ...found }, callsInProgress: 0, onError: nothing }
}

describe('Sending a held response', () => {
  it('uses the functions that were found, and counts those at work', () => {
    const depths: number[] = []
    const sending = sendingWith({
      end(...args) {
        depths.push(sending.callsInProgress)
        if (args[0] === 'outer') sendByOriginal(sending, 'end', ['inner'])
        return args[0]
      },
    })
    expect(sendByOriginal(sending, 'end', ['outer'])).toBe('outer')
    expect([...depths, sending.callsInProgress]).toEqual([1, 2, 0])
  })

  it('happens whether what it waits for succeeds or fails', async () => {
    const sending = sendingWith({})
    await new Promise<void>((resolve) => sendAfter(sending, Promise.resolve(), resolve))
    await new Promise<void>((resolve) =>
      sendAfter(sending, Promise.reject(new Error('x')), resolve),
    )
  })

  it('tells when it fails', async () => {
    const fault = new Error('an outer middleware')
    const failed = new Promise<unknown>((resolve) => {
      const end = (): never => {
        throw fault
      }
      const sending = { ...sendingWith({ end }), onError: resolve }
      sendAfter(sending, Promise.resolve(), () => sendByOriginal(sending, 'end', []))
    })
    expect(await failed).toBe(fault)
  })
})
