import express from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { StoredResult } from '../../../src/idempotency/buffered-response/stored-result.js'
import { replayResult } from '../../../src/middleware/idempotency-key/answer.js'
import { serve } from '../../support/receiver/serve.js'

/** What a caller gets of a replay by a server that lets no body pass where none belongs. */
async function replay(
  over: Partial<StoredResult>,
  { before = {}, method = 'POST' }: { before?: Record<string, string>; method?: string } = {},
): Promise<Response> {
  const app = express().use((_req, res) => {
    res.set(before)
    replayResult(res, { status: 200, headers: [], body: Buffer.alloc(0), ...over })
  })
  const { url, close } = await serve(app, { rejectNonStandardBodyWrites: true })
  onTestFinished(close)
  return await fetch(url, { method })
}

describe('A replay', () => {
  it('puts kept headers in the place of those already there, repeated ones included', async () => {
    const headers = [
      ['link', '</a>'],
      ['link', '</b>'],
    ] as const
    const answer = await replay({ headers }, { before: { Link: '</old>', 'X-Other': '1' } })
    expect(Object.fromEntries(answer.headers)).toMatchObject({ link: '</a>, </b>', 'x-other': '1' })
  })

  it.each<[string, number]>([
    ['POST', 204],
    ['POST', 304],
    ['HEAD', 200],
  ])('is sent where Node takes no body: %s, %i', async (method, status) => {
    expect((await replay({ status }, { method })).status).toBe(status)
  })
})
