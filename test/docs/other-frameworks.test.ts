import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { type Programs, placeBlocks } from './programs.js'

const issuer = await createTestIssuer()
/** A clock that fails is a fault of the receiver. */
const BROKEN_CLOCK = `--import=data:text/javascript,${encodeURIComponent('Date.now = () => NaN')}`
let placed: Programs
beforeAll(async () => {
  placed = await placeBlocks('other-frameworks', 'docs/other-frameworks.md')
  await writeFile(`${placed.folder}/policy.json`, JSON.stringify(issuer.policy()))
})
afterAll(() => Promise.all([placed.remove(), issuer.close()]))

const bearer = (claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${issuer.token(claims)}`,
})

describe.each(['node:http', 'Fastify', 'Hono'])('%s', (name) => {
  it('accepts a service, and answers a refusal as the middleware does', async () => {
    const { url } = await placed.start(name)
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
    const app = await placed.start(name, { NODE_OPTIONS: BROKEN_CLOCK })
    for (let call = 0; call < 2; call += 1) {
      const answer = await fetch(app.url, { headers: bearer() })
      expect(answer.status).toBe(500)
      expect(await answer.text()).not.toContain('authenticate')
    }
  })
})

describe('WebSockets', () => {
  it('opens for a service, and answers the upgrade of another', async () => {
    const { url } = await placed.start('WebSockets')
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

describe('NestJS', () => {
  it('runs a write once', async () => {
    const { url } = await placed.start('NestJS')
    const write = async (body: object, headers: object = {}) => {
      const answer = await fetch(`${url}/orders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      return [answer.status, await answer.text()]
    }
    const withKey = () => ({ ...bearer(), 'idempotency-key': 'a-key' })
    const first = await write({ item: 'book' }, withKey())
    expect(first).toEqual([201, expect.stringContaining('book')])
    expect(await write({ item: 'book' }, withKey())).toEqual(first)
    expect((await write({}, withKey()))[0]).toBe(422)
    expect((await write({}, bearer()))[0]).toBe(400)
    expect((await write({}))[0]).toBe(401)
  })
})

describe('Report only', () => {
  it('lets every request pass and logs what would be refused', async () => {
    const app = await placed.start('Report only')
    expect((await fetch(app.url, { headers: bearer() })).status).toBe(200)
    expect((await fetch(app.url, { headers: bearer({ aud: 'invoices' }) })).status).toBe(200)
    await expect.poll(app.complaints).toContain('would be refused: claim_invalid')
  })
})
