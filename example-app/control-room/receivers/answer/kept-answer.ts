import { once } from 'node:events'
import { request } from 'node:http'
import express from 'express'
import { type IdempotencyStore, requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { createTestIssuer } from 'express-service-auth/testing'
import { listen } from '../../../listen.js'
import type { GivenAnswer } from '../stored-answer.js'

/** Answers one request under a key, and takes what the package then gives to its store. */
export async function keptAnswer({ status, body }: GivenAnswer): Promise<Uint8Array> {
  const issuer = await createTestIssuer({ http: false })
  const { store, kept } = keepingStore()
  const app = express().disable('x-powered-by')
  app.use(serviceAuth(issuer.policy()))
  app.post('/', requireIdempotencyKey({ store }), (_req, res) => {
    res.writeHead(status, body === '' ? {} : { 'content-type': 'application/json' }).end(body)
  })
  const server = await listen(app, 0)
  const headers = { authorization: `Bearer ${issuer.token()}`, 'idempotency-key': 'k1' }
  const call = request(server.url, { method: 'POST', headers }).end()
  await once(call, 'response')
  await server.close()
  await issuer.close()
  return kept()
}

function keepingStore() {
  let result: Uint8Array | undefined
  const store: IdempotencyStore = {
    reserve: async () => ({ outcome: 'reserved', fence: 1 }),
    renew: async () => true,
    async settle(_run, ending) {
      if (ending.type === 'finished') result = ending.result
      return true
    },
  }
  function kept(): Uint8Array {
    if (result === undefined) throw new Error('nothing was kept')
    return result
  }
  return { store, kept }
}
