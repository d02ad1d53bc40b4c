import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { captureOf, hasNoBody, isHeld } from '../../src/held-response/capture-state.js'

const observer = {
  complete: async () => {},
  flow: async () => {},
  flowed: async () => {},
  cutOff() {},
}
const capture = (isHead = false) => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  return captureOf({ response, maxBytes: 10, isHead }, observer, response)
}

describe('How far a response has come', () => {
  it('begins with nothing, held back', () => {
    const begun = capture()
    expect(isHeld(begun)).toBe(true)
    expect(begun).toMatchObject({ head: undefined, chunks: [], size: 0, isEnded: false })
  })

  it('has no body to HEAD and with the statuses that have none', () => {
    expect(hasNoBody(capture(true))).toBe(true)
    for (const [status, isBodyless] of [
      [200, false],
      [205, false],
      [204, true],
      [304, true],
      [199, true],
    ] as const) {
      const begun = capture()
      begun.response.statusCode = status
      expect(hasNoBody(begun)).toBe(isBodyless)
      // What was written counts, whatever is assigned later.
      begun.head = { status, headers: [] }
      begun.response.statusCode = isBodyless ? 200 : 204
      expect(hasNoBody(begun)).toBe(isBodyless)
    }
  })
})
