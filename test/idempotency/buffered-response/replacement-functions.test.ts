import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import {
  assertLength,
  copyBytes,
  isContent,
  parseWriteArguments,
  writeAfterEnd,
} from '../../../src/idempotency/buffered-response/replacement-functions.js'

function errorOf(work: () => unknown): NodeJS.ErrnoException {
  try {
    work()
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  throw new Error('nothing was thrown')
}

describe('What a response is written with', () => {
  it('is a text or bytes', () => {
    for (const chunk of ['', 'a', Buffer.alloc(1), new Uint8Array(1)])
      expect(isContent(chunk)).toBe(true)
    for (const chunk of [null, undefined, 0, {}, [], new Uint16Array(1), new ArrayBuffer(1)]) {
      expect(isContent(chunk)).toBe(false)
    }
  })

  const callback = (): void => {}
  it.each([
    [[], {}],
    [[callback], { callback }],
    [['a', callback], { chunk: 'a', callback }],
    [['a', null, callback], { chunk: 'a', callback }],
    [['a', 'hex', callback], { chunk: 'a', encoding: 'hex', callback }],
  ])('comes with its encoding and callback in any place: %j', (given, read) => {
    expect(parseWriteArguments(given)).toEqual(read)
  })

  it('is copied, so that its owner may use it again', () => {
    const owned = Buffer.from('ab')
    const bytes = copyBytes(owned, undefined)
    owned.fill(0)
    expect(Buffer.from(bytes).toString()).toBe('ab')
    expect(copyBytes('ff', 'hex')).toEqual(Buffer.from([255]))
  })

  it('comes too late with the code that Node gives', () => {
    expect(writeAfterEnd()).toMatchObject({ code: 'ERR_STREAM_WRITE_AFTER_END' })
  })

  it('has another length than was announced with the error that Node throws', () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    response.strictContentLength = true
    response.setHeader('content-length', 2)
    const announced = { status: 200, headers: [], strictLength: 2 }
    const { code, message } = errorOf(() => assertLength(announced, 3, false))
    expect(errorOf(() => response.end('abc'))).toMatchObject({ code, message })
  })
})
