import { Readable } from 'node:stream'
import { gunzipSync } from 'node:zlib'
import type { RequestHandler, Response } from 'express'
import { expect, it } from 'vitest'
import { describeReceivers } from '../../support/receiver/each-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { compress, endingLater, signing } from './outer-middlewares.js'

describeReceivers('A response behind the key and among other middlewares', (bench) => {
  const PLAIN = 'compress me '.repeat(40)
  const GZIP = { 'accept-encoding': 'gzip' }

  it('is compressed outside beyond the limit, too', async () => {
    for (const send of [
      (res: Response) => void res.type('text').send(PLAIN),
      (res: Response) => void res.end(PLAIN),
      (res: Response) => void Readable.from([...(PLAIN.match(/.{1,12}/g) ?? [])]).pipe(res),
    ]) {
      const options = { maxResponseBytes: 10 }
      const receiver = await bench.start((_req, res) => send(res), options, { outer: [compress] })
      const key = newKey()
      const first = await call(receiver.port, { key, headers: GZIP })
      expect(first.headers['content-encoding']).toEqual(['gzip'])
      expect(gunzipSync(first.body).toString()).toBe(PLAIN)
      const second = await call(receiver.port, { key, headers: GZIP })
      expect(second.problem).toBe('result-not-stored')
    }
  })

  it('passes an outer middleware that writes by way of the response itself', async () => {
    const receiver = await bench.start(
      (_req, res) => void res.end('body'),
      {},
      { outer: [signing] },
    )
    const key = newKey()
    for (let time = 0; time < 2; time += 1) {
      const answer = await call(receiver.port, { key })
      expect(answer.body.toString()).toBe('body -- signed')
    }
    const bare = await bench.startBare((_req, res) => void res.end('body'), { outer: [signing] })
    expect((await call(bare.port)).body.toString()).toBe('body -- signed')
  })

  it.each([0, 262_144])(
    'passes what an outer middleware ends it with later (limit %i)',
    async (limit) => {
      const options = { maxResponseBytes: limit }
      const handler: RequestHandler = (_req, res) => void res.write('a ', () => res.end('body'))
      const receiver = await bench.start(handler, options, { outer: [endingLater] })
      const key = newKey()
      expect((await call(receiver.port, { key })).body.toString()).toBe('a body -- later')
      if (limit === 0) return
      const retry = await call(receiver.port, { key })
      expect(retry.body.toString()).toBe('a body -- later')
      expect(receiver.handled).toBe(1)
    },
  )
})
