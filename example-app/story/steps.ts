import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Stage } from './stage.js'
import type { Answer, Step } from './step.js'

const READ = ['orders:read']
const WRITE = ['orders:write']
const POLL_MS = 50
const MAX_POLLS = 400

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
  // The token of the accepted write: on Postgres a refusal of the key uses up none.
  let used: string | undefined
  const write = async (quantity: number) => {
    const token = await stage.tokenOf('billing', WRITE)
    used ??= token
    return call.create({ token, key, quantity })
  }
  return [
    {
      title: 'accepted read',
      request: 'billing: GET /orders/o-1',
      about: 'Billing is an approved caller and its token holds the permission, so it may read.',
      expected: { status: 200, body: { id: 'o-1' } },
      send: async () => call.read(await stage.tokenOf('billing', READ)),
    },
    {
      title: 'accepted write',
      request: 'billing: POST /orders, k1',
      about: 'A write brings an idempotency key: it runs, and its answer is kept under the key.',
      expected: { status: 201, newOrders: 1 },
      send: () => write(2),
    },
    {
      title: 'identical retry, from store',
      request: 'billing: POST /orders, k1',
      about:
        'The same request with the same key gets the kept answer, and no second order is made.',
      expected: { status: 201, replayOf: 'accepted write' },
      send: () => write(2),
    },
    {
      title: 'key reused with another body',
      request: 'billing: POST /orders, k1',
      about: 'The same key with another body is a mistake of the caller, so nothing runs.',
      expected: { status: 422, reason: 'key_reused' },
      send: () => write(3),
    },
    {
      title: 'replayed token',
      request: 'billing: POST /orders, k2',
      about: 'A write takes each token once: whoever has copied one can do nothing with it.',
      expected: { status: 401, reason: 'token_replayed' },
      send: () => call.create({ token: used ?? '' }),
    },
  ]
}

/** The same through billing's own door, which retries by itself. */
function answerLost(stage: Stage, call: Caller): Step[] {
  return [
    {
      title: 'answer lost, billing retries',
      request: 'billing: PUT /invoices/…',
      about:
        'The answer gets lost after the work is done, billing retries, and there is one order.',
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
      about:
        'The database rolls the order back, with the record of its key and the word to billing.',
      expected: { status: 503, newOrders: 0, reason: 'store_unavailable', retryAfter: '5' },
      send() {
        cutNextCommit()
        return write()
      },
    },
    {
      title: 'the retry writes it',
      request: 'billing: POST /orders, k3',
      about: 'Nothing was written, so the same request with the same key simply runs.',
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
      about: 'The word to billing was committed with the order, and is sent until billing has it.',
      expected: { status: 200, body: { taken: 1 } },
      send: () => call.placedOrder(order),
    },
  ]
}

function oneEndpointForBoth(stage: Stage, call: Caller): Step[] {
  const service = async () => ({
    authorization: `Bearer ${await stage.tokenOf('billing', READ)}`,
  })
  const user = () => ({ cookie: `sAccessToken=${stage.sessionOf('alice')}` })
  return [
    {
      title: 'endpoint for both, a service',
      request: 'billing: GET /orders/o-1/tracking',
      about: 'This endpoint takes services and users; here a service asks with its token.',
      expected: { status: 200, body: { askedBy: 'service billing' } },
      send: async () => call.track(await service()),
    },
    {
      title: 'endpoint for both, a user',
      request: 'alice: GET /orders/o-1/tracking',
      about: 'At the same endpoint a user asks with the cookie of a session.',
      expected: { status: 200, body: { askedBy: 'user alice' } },
      send: () => call.track(user()),
    },
    {
      title: 'endpoint for both, two at once',
      request: 'both: GET /orders/o-1/tracking',
      about: 'A request with both credentials cannot be two callers, so it is refused.',
      expected: { status: 401, reason: 'credentials_ambiguous' },
      // A browser's cookie beside a service's token: one request cannot be two callers.
      send: async () => call.track({ ...user(), ...(await service()) }),
    },
  ]
}

function refusedCalls(stage: Stage, call: Caller): Step[] {
  return [
    {
      title: 'missing permission',
      request: 'reporting: POST /orders',
      about: 'The token claims a permission that the policy does not let reporting have.',
      expected: { status: 403, reason: 'permission_missing' },
      // The token claims the permission; the receiver's ceiling for reporting does not hold it.
      send: async () => call.create({ token: await stage.tokenOf('reporting', WRITE) }),
    },
    {
      title: 'unapproved caller',
      request: 'shipping: GET /orders/o-1',
      about: 'The token is genuine, and the policy does not know its caller.',
      expected: { status: 403, reason: 'caller_not_approved' },
      send: async () => call.read(await stage.tokenOf('shipping', READ)),
    },
    {
      title: 'tampered token',
      request: 'reporting: GET /orders/o-1',
      about: 'Somebody has changed the caller in a token, and the signature gives it away.',
      expected: { status: 401, reason: 'signature_invalid' },
      send: async () => call.read(asBilling(await stage.tokenOf('reporting', READ))),
    },
    {
      title: 'wrong audience',
      request: 'billing: GET /orders/o-1',
      about: 'A genuine token for another service opens nothing here.',
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
      about:
        'The core signs with a new key, and the receiver fetches the key set once to learn of it.',
      expected: { status: 200, keySetRequests: 1 },
      async send() {
        early = await stage.tokenOf('billing', READ)
        stage.core.rotate()
        return call.read(await stage.tokenOf('billing', READ))
      },
    },
    {
      title: 'old key after the rotation',
      request: 'billing: GET /orders/o-1',
      about: 'A token that the old key has signed is still good, for that key is still published.',
      expected: { status: 200, keySetRequests: 0 },
      send: () => call.read(early),
    },
  ]
}

function keySetDown(stage: Stage, call: Caller): Step[] {
  let token = ''
  return [
    {
      title: 'key set down',
      request: 'billing: GET /orders/o-1',
      about: 'The core no longer gives its key set, and the receiver goes on with what it has.',
      expected: { status: 200, keySetRequests: 0 },
      async send() {
        token = await stage.tokenOf('billing', READ)
        await stage.core.stop()
        return call.read(token)
      },
    },
    {
      title: 'key set down, fresh receiver',
      request: 'billing: GET /orders/o-1',
      about: 'A receiver that starts now cannot know any key: it says so, and refuses nobody.',
      expected: { status: 503, reason: 'key_set_unavailable', retryAfter: '5' },
      async send() {
        const receiver = await stage.startOrders()
        const answer = await call.read(token, receiver.url)
        await receiver.close()
        await stage.core.start()
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

type Caller = ReturnType<typeof callerOf>

/** The requests of the story, one attempt each, so that every answer can be shown. */
function callerOf({ ordersUrl, billingUrl }: Stage) {
  return {
    read: (token: string, receiverUrl = ordersUrl) =>
      send(`${receiverUrl}/orders/o-1`, { headers: { authorization: `Bearer ${token}` } }),
    /** Asks the endpoint that takes services and users. */
    track: (headers: Readonly<Record<string, string>>) =>
      send(`${ordersUrl}/orders/o-1/tracking`, { headers }),
    create: ({ token, key = randomUUID(), quantity = 1 }: Write) =>
      send(`${ordersUrl}/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'idempotency-key': `"${key}"`,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ item: 'lamp', quantity }),
      }),
    putInvoice: (invoice: string) =>
      send(`${billingUrl}/invoices/${invoice}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ item: 'desk', quantity: 1 }),
      }),
    /** Asks billing how often it has taken an order in; waits until it has. */
    async placedOrder(id: string): Promise<Answer> {
      const ask = () => send(`${billingUrl}/placed-orders/${id}`, {})
      let answer = await ask()
      for (let polls = 1; answer.status === 404 && polls < MAX_POLLS; polls += 1) {
        await delay(POLL_MS)
        answer = await ask()
      }
      return answer
    },
  }
}

interface Write {
  readonly token: string
  readonly key?: string
  readonly quantity?: number
}

async function send(url: string, request: RequestInit): Promise<Answer> {
  const response = await fetch(url, request)
  return { status: response.status, headers: response.headers, text: await response.text() }
}
