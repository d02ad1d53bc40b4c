import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { captureOf } from '../../src/held-response/capture-state.js'
import { announceLength, isSentWithHead } from '../../src/held-response/framing.js'

const observer = {
  complete: async () => {},
  flow: async () => {},
  flowed: async () => {},
  cutOff() {},
}
const begun = () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  return captureOf({ response, maxBytes: 10, isHead: false }, observer, response)
}

describe('The length of a response in one piece', () => {
  it('is told where Node would tell it', () => {
    const capture = begun()
    expect(announceLength(capture, 5)).toBe(true)
    expect(capture.response.getHeader('content-length')).toBe(5)
    expect(announceLength(capture, 6)).toBe(false)
    expect(capture.response.getHeader('content-length')).toBe(5)
  })

  it.each(['transfer-encoding', 'trailer'])('is not told beside %s', (name) => {
    const capture = begun()
    capture.response.setHeader(name, 'x')
    expect(announceLength(capture, 5)).toBe(false)
  })
})

describe('A text in one piece with the head', () => {
  const headed = (value: string) => {
    const capture = begun()
    capture.head = { status: 200, headers: [['a', value]] }
    return capture
  }

  it('is UTF-8 below a head of ASCII, and nothing else', () => {
    expect(isSentWithHead(headed('a'), 'é', undefined)).toBe(true)
    expect(isSentWithHead(headed('a'), 'é', 'utf8')).toBe(true)
    expect(isSentWithHead(headed('é'), 'e', undefined)).toBe(false)
    for (const encoding of ['hex', 'latin1', 'base64', 'utf16le'] as const) {
      expect(isSentWithHead(headed('a'), 'ab', encoding)).toBe(false)
    }
    for (const chunk of ['', undefined, null, Buffer.from('a')]) {
      expect(isSentWithHead(headed('a'), chunk, undefined)).toBe(false)
    }
  })
})
