/** Run with --expose-gc: the bytes of heap that a run costs after it was answered, until a full collection. */
import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import express from 'express'
import { type IdempotencyStore, requireIdempotencyKey, serviceAuth } from 'express-service-auth'
import { createTestIssuer } from 'express-service-auth/testing'

const REQUESTS = 700

/** A store that answers a turn later and keeps nothing. */
function forgetfulStore(): IdempotencyStore {
  let fence = 0
  return {
    async reserve() {
      await nextTurn()
      fence += 1
      return { outcome: 'reserved', fence }
    },
    renew: async () => true,
    async settle() {
      await nextTurn()
      return true
    },
  }
}

const issuer = await createTestIssuer()
const app = express().use(serviceAuth(issuer.policy()))
app.post('/', requireIdempotencyKey({ store: forgetfulStore() }), (req, res) => {
  res.json({ isAborted: req.idempotency?.signal.aborted })
})
const server = createServer(app).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const authorization = `Bearer ${await issuer.token()}`

async function send(key: number): Promise<void> {
  const headers = { authorization, 'idempotency-key': `key-${key}` }
  const call = request({ agent, port, method: 'POST', headers }).end()
  const [response] = await once(call, 'response')
  if (response.statusCode !== 200) throw new Error(String(response.statusCode))
  response.resume()
  await once(response, 'end')
}
async function heapAfter(requests: number): Promise<number> {
  for (let key = 0; key < requests; key += 1) await send(key)
  for (let turn = 0; turn < 3; turn += 1) globalThis.gc?.({ type: 'minor' })
  return process.memoryUsage().heapUsed
}

const before = await heapAfter(REQUESTS)
const after = await heapAfter(REQUESTS)
console.log(JSON.stringify({ bytesARequest: (after - before) / REQUESTS }))
process.exit()
