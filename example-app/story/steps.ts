import { randomUUID } from 'node:crypto'
import { type Caller, callerOf } from './call.js'
import type { Stage } from './stage.js'
import type { Step } from './step.js'

const READ = ['orders:read']
const WRITE = ['orders:write']

/** The steps of the story, in order. */
export function storySteps(stage: Stage): Step[] {
  const call = callerOf(stage)
  return [
    ...readAndWrite(stage, call),
    ...answerLost(stage, call),
    ...(stage.cutNextCommit ? connectionLost(stage, call, stage.cutNextCommit) : []),
    ...oneEndpointForBoth(stage, call),
    ...refusedCalls(stage, call),
    ...keysInMotion(stage, call),
    ...keySetDown(stage, call),
  ]
}

function readAndWrite(stage: Stage, call: Caller): Step[] {
  const key = `k1-${randomUUID()}` // Records in Redis outlive the story.
  let used = ''
  const write = async (quantity: number) => {
    used = await stage.tokenOf('billing', WRITE)
    return call.create({ token: used, key, quantity })
  }
  return [
    {
      title: 'accepted read',
      request: 'billing: GET /orders/o-1',
      expected: { status: 200, body: { id: 'o-1' } },
      send: async () => call.read(await stage.tokenOf('billing', READ)),
    },
    {
      title: 'accepted write',
      request: 'billing: POST /orders, k1',
      expected: { status: 201, newOrders: 1 },
      send: () => write(2),
    },
    {
      title: 'identical retry, from store',
      request: 'billing: POST /orders, k1',
      expected: { status: 201, replayOf: 'accepted write' },
      send: () => write(2),
    },
    {
      title: 'key reused with another body',
      request: 'billing: POST /orders, k1',
      expected: { status: 422, reason: 'key_reused' },
      send: () => write(3),
    },
    {
      title: 'replayed token',
      request: 'billing: POST /orders, k2',
      expected: { status: 401, reason: 'token_replayed' },
      send: () => call.create({ token: used }),
    },
  ]
}

/** The same through billing's own door, which retries by itself. */
function answerLost(stage: Stage, call: Caller): Step[] {
  return [
    {
      title: 'answer lost, billing retries',
      request: 'billing: PUT /invoices/…',
      expected: { status: 200, newOrders: 1, body: { attempts: 2, isReplay: true } },
      send: () => {
        stage.loseNextAnswer()
        return call.putInvoice(randomUUID())
      },
    },
  ]
}

/** With Postgres: the order, the word to billing and the record are one transaction. */
function connectionLost(stage: Stage, call: Caller, cutNextCommit: () => void): Step[] {
  const key = `k3-${randomUUID()}`
  let order = ''
  const write = async () => call.create({ token: await stage.tokenOf('billing', WRITE), key })
  return [
    {
      title: 'connection ends before COMMIT',
      request: 'billing: POST /orders, k3',
      expected: { status: 503, newOrders: 0, reason: 'store_unavailable', retryAfter: '5' },
      send() {
        cutNextCommit()
        return write()
      },
    },
    {
      title: 'the retry writes it',
      request: 'billing: POST /orders, k3',
      expected: { status: 201, newOrders: 1 },
      async send() {
        const answer = await write()
        order = (JSON.parse(answer.text) as { id: string }).id
        return answer
      },
    },
    {
      title: 'billing is notified, once',
      request: 'GET /placed-orders/…',
      expected: { status: 200, body: { taken: 1 } },
      send: () => call.placedOrder(order),
    },
  ]
}

function oneEndpointForBoth(stage: Stage, call: Caller): Step[] {
  const service = async () => ({
    authorization: `Bearer ${await stage.tokenOf('billing', READ)}`,
  })
  const user = async () => ({ cookie: `sAccessToken=${await stage.sessionOf('alice')}` })
  return [
    {
      title: 'endpoint for both, a service',
      request: 'billing: GET /orders/o-1/tracking',
      expected: { status: 200, body: { askedBy: 'service billing' } },
      send: async () => call.track(await service()),
    },
    {
      title: 'endpoint for both, a user',
      request: 'alice: GET /orders/o-1/tracking',
      expected: { status: 200, body: { askedBy: 'user alice' } },
      send: async () => call.track(await user()),
    },
    {
      title: 'endpoint for both, two at once',
      request: 'both: GET /orders/o-1/tracking',
      expected: { status: 401, reason: 'credentials_ambiguous' },
      // A browser's cookie beside a service's token: one request cannot be two callers.
      send: async () => call.track({ ...(await user()), ...(await service()) }),
    },
  ]
}

function refusedCalls(stage: Stage, call: Caller): Step[] {
  return [
    {
      title: 'missing permission',
      request: 'reporting: POST /orders',
      expected: { status: 403, reason: 'permission_missing' },
      // The token claims the permission; the receiver's ceiling for reporting does not hold it.
      send: async () => call.create({ token: await stage.tokenOf('reporting', WRITE) }),
    },
    {
      title: 'unapproved caller',
      request: 'shipping: GET /orders/o-1',
      expected: { status: 403, reason: 'caller_not_approved' },
      send: async () => call.read(await stage.tokenOf('shipping', READ)),
    },
    {
      title: 'tampered token',
      request: 'reporting: GET /orders/o-1',
      expected: { status: 401, reason: 'signature_invalid' },
      send: async () => call.read(asBilling(await stage.tokenOf('reporting', READ))),
    },
    {
      title: 'wrong audience',
      request: 'billing: GET /orders/o-1',
      expected: { status: 401, reason: 'claim_invalid' },
      send: async () => call.read(await stage.tokenOf('billing', READ, 'invoices')),
    },
  ]
}

function keysInMotion(stage: Stage, call: Caller): Step[] {
  let early = ''
  return [
    {
      title: 'rotation in mid-flight',
      request: 'billing: GET /orders/o-1',
      expected: { status: 200, keySetRequests: 1 },
      async send() {
        early = await stage.tokenOf('billing', READ)
        await stage.core.rotate()
        return call.read(await stage.tokenOf('billing', READ))
      },
    },
    {
      title: 'old key after the rotation',
      request: 'billing: GET /orders/o-1',
      expected: { status: 200, keySetRequests: 0 },
      send: () => call.read(early),
    },
  ]
}

function keySetDown(stage: Stage, call: Caller): Step[] {
  return [
    {
      title: 'key set down',
      request: 'billing: GET /orders/o-1',
      expected: { status: 200, keySetRequests: 0 },
      async send() {
        stage.core.setDown(true)
        return call.read(await stage.tokenOf('billing', READ))
      },
    },
    {
      title: 'key set down, fresh receiver',
      request: 'billing: GET /orders/o-1',
      expected: { status: 503, reason: 'key_set_unavailable', retryAfter: '5' },
      async send() {
        const receiver = await stage.startFreshReceiver()
        const answer = await call.read(await stage.tokenOf('billing', READ), receiver.url)
        await receiver.close()
        stage.core.setDown(false)
        return answer
      },
    },
  ]
}

/** The same token, with another `sub` and the old signature. */
function asBilling(token: string): string {
  const [header, payload = '', signature] = token.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const forged = Buffer.from(JSON.stringify({ ...claims, sub: 'billing' })).toString('base64url')
  return [header, forged, signature].join('.')
}
