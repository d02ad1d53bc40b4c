import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { type PlacedBlocks, placeBlocks } from './blocks.js'
import { type RunningApp, startBlock } from './running-blocks.js'

const issuer = await createTestIssuer()
const environment = { ISSUER: issuer.url }
/** A clock that fails is a fault of the receiver. */
const BROKEN_CLOCK = `--import=data:text/javascript,${encodeURIComponent('Date.now = () => NaN')}`
let placed: PlacedBlocks
beforeAll(async () => {
  placed = await placeBlocks('other-frameworks', 'docs/other-frameworks.md')
})
afterAll(async () => {
  await placed.remove()
  await issuer.close()
})

const bearer = (claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${issuer.token(claims)}`,
})

async function start(heading: string): Promise<RunningApp> {
  const app = await startBlock(placed, heading, environment)
  onTestFinished(async () => void (await app.stop('SIGKILL')))
  return app
}

describe.each(['node:http', 'Fastify', 'Hono'])('%s', (name) => {
  it('accepts a service, and answers a refusal as the middleware does', async () => {
    const { url } = await start(name)
    const accepted = await fetch(url, { headers: bearer() })
    expect([accepted.status, await accepted.text()]).toEqual([200, 'Hello, billing'])

    const refused = await fetch(url, { headers: bearer({ aud: 'invoices' }) })
    expect(refused.status).toBe(401)
    expect(refused.headers.get('www-authenticate')).toBe(
      'Bearer realm="service", error="invalid_token"',
    )
    expect(refused.headers.get('cache-control')).toBe('no-store')
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(await refused.json()).toEqual({
      type: 'about:blank',
      title: 'Unauthorized',
      status: 401,
    })
    const forbidden = await fetch(url, { headers: bearer({ permissions: [] }) })
    expect(forbidden.status).toBe(403)
    const head = await fetch(url, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([401, ''])
  })

  it('answers 500 to a fault of the receiver, and goes on', async () => {
    const app = await startBlock(placed, name, { ...environment, NODE_OPTIONS: BROKEN_CLOCK })
    onTestFinished(async () => void (await app.stop('SIGKILL')))
    for (let call = 0; call < 2; call += 1) {
      const answer = await fetch(app.url, { headers: bearer() })
      expect(answer.status).toBe(500)
      expect(await answer.text()).not.toContain('authenticate')
    }
  })
})

describe('WebSockets', () => {
  it('opens for a service, and answers the upgrade of another', async () => {
    const { url } = await start('WebSockets')
    const open = (headers: Record<string, string>) =>
      new Promise((resolve) => {
        const socket = new WebSocket(url.replace('http', 'ws'), { headers })
        socket.on('message', (data) => {
          resolve(String(data))
          socket.close()
        })
        socket.on('unexpected-response', (_, response) => {
          resolve([response.statusCode, response.headers['www-authenticate']])
          socket.terminate()
        })
        socket.on('error', () => {})
      })
    expect(await open(bearer())).toBe('Hello, billing')
    expect(await open({})).toEqual([401, 'Bearer realm="service"'])
  })
})

describe.each(['NestJS', '@fastify/express, with idempotent writes'])('%s', (heading) => {
  it('runs a write once', async () => {
    const { url } = await start(heading)
    const key = randomUUID()
    const write = () =>
      fetch(`${url}/orders`, {
        method: 'POST',
        headers: { ...bearer(), 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify({ item: 'book' }),
      })
    const first = await write()
    const text = await first.text()
    expect([first.status, JSON.parse(text).item]).toEqual([201, 'book'])
    const second = await write()
    expect([second.status, await second.text()]).toEqual([201, text])
    expect((await fetch(`${url}/orders`, { method: 'POST' })).status).toBe(401)
    const other = { ...bearer(), 'content-type': 'application/json', 'idempotency-key': key }
    const changed = await fetch(`${url}/orders`, { method: 'POST', headers: other, body: '{}' })
    expect(changed.status).toBe(422)
    // The guard behind the first function of the list is reached.
    const headers = { ...bearer(), 'content-type': 'application/json' }
    const keyless = await fetch(`${url}/orders`, { method: 'POST', headers, body: '{}' })
    expect(keyless.status).toBe(400)
  })
})

describe('Report only', () => {
  it('lets every request pass and logs what would be refused', async () => {
    const app = await start('Report only')
    expect((await fetch(app.url, { headers: bearer() })).status).toBe(200)
    expect((await fetch(app.url, { headers: bearer({ aud: 'invoices' }) })).status).toBe(200)
    await expect.poll(app.complaints).toContain('would be refused: claim_invalid')
  })
})
