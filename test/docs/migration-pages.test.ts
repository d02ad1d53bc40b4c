import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Express } from 'express'
import type { TestIssuer } from 'express-service-auth/testing'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { type PlacedBlocks, placeCode, readDocument } from './blocks.js'
import { codeBlocks, tableRows } from './markdown.js'
import {
  REQUESTS,
  type Scene,
  SEQUENCES,
  statusOf,
  WITHOUT_CREDENTIALS,
} from './migration-requests.js'

const SIDES = ['Before', 'After'] as const

let issuer: TestIssuer

beforeAll(async () => {
  issuer = await createTestIssuer()
})

afterAll(() => issuer.close())

interface OpenScene extends Scene {
  readonly app: Express
  close(): void
}

let instances = 0

/** An app of a page, with keys and state of its own. */
async function openScene(file: string): Promise<OpenScene> {
  instances += 1
  process.env['ISSUER'] = issuer.url
  const { app, auth }: { app: Express; auth?: { close(): void } } = await import(
    `${file}?${instances}`
  )
  delete process.env['ISSUER']
  const server: Server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    auth?.close()
    server.close()
  }
  return { issuer, app, port: (server.address() as AddressInfo).port, close }
}

const page = await readDocument('docs/comparison.md')
const PEERS = ['express-jwt', 'express-oauth2-jwt-bearer'] as const

const headingOf = (peer: string): string => `With \`${peer}\``

describe.each(PEERS)('the way from %s', (peer) => {
  const rows = tableRows(page, 'What behaves otherwise')
  const promises = rows.map(([name = '', ...statuses]) => ({
    name,
    Before: Number.parseInt(statuses[PEERS.indexOf(peer)] ?? '', 10),
    After: Number.parseInt(statuses[PEERS.length] ?? '', 10),
  }))
  const fileOf = (side: (typeof SIDES)[number]): string =>
    placed.fileOf(headingOf(side === 'Before' ? peer : 'express-service-auth'))
  let placed: PlacedBlocks

  beforeAll(async () => {
    placed = await placeCode(peer, codeBlocks(page))
  })

  afterAll(() => placed.remove())

  it('promises nothing that is not tried here', () => {
    const names = promises.map(({ name }) => name)
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter((name) => !(name in REQUESTS || name in SEQUENCES))).toEqual([])
  })

  describe.each(SIDES)('%s', (side) => {
    let scene: OpenScene

    beforeAll(async () => {
      scene = await openScene(fileOf(side))
    })

    afterAll(() => scene.close())

    it.each(promises.filter(({ name }) => name in REQUESTS))(
      'answers $name as the page says',
      async ({ name, [side]: status }) => {
        const answer = (await REQUESTS[name]?.(scene)) ?? ''
        expect(statusOf(answer), answer).toBe(status)
      },
    )
  })

  describe.each(SIDES)('%s, with keys that come and go', (side) => {
    let scene: OpenScene | undefined

    afterEach(() => {
      issuer.up()
      scene?.close()
    })

    it.each(promises.filter(({ name }) => name in SEQUENCES))(
      'answers $name as the page says',
      async ({ name, [side]: status }) => {
        scene = await openScene(fileOf(side))
        const answer = (await SEQUENCES[name]?.(scene)) ?? ''
        expect(statusOf(answer), answer).toBe(status)
        if (status === 503) expect(answer).toMatch(/^Retry-After: 5\r$/m)
      },
    )
  })

  describe('what callers learn of a refusal', () => {
    const causes = promises.filter(
      ({ name, After }) => After === 401 && name in REQUESTS && !WITHOUT_CREDENTIALS.includes(name),
    )

    it('was the stack, or in production one word', async () => {
      vi.spyOn(console, 'error').mockImplementation(() => {})
      const scene = await openScene(fileOf('Before'))
      for (const { name } of causes.filter(({ Before }) => Before === 401)) {
        scene.app.set('env', 'development')
        expect(await REQUESTS[name]?.(scene), name).toMatch(/Error: .+<br> &nbsp; &nbsp;at /)
        scene.app.set('env', 'production')
        expect(await REQUESTS[name]?.(scene), name).toContain('<pre>Unauthorized</pre>')
      }
      scene.close()
    })
  })
})

describe('what express-oauth2-jwt-bearer tells a caller', () => {
  let placed: PlacedBlocks
  let scene: OpenScene

  beforeAll(async () => {
    placed = await placeCode('leaks', codeBlocks(page))
    scene = await openScene(placed.fileOf(headingOf('express-oauth2-jwt-bearer')))
  })

  afterAll(async () => {
    issuer.up()
    scene.close()
    await placed.remove()
  })

  it('tells the truth of the network error in the header', async () => {
    const answer = await SEQUENCES['the key set is unreachable']?.(scene)
    expect(answer).toMatch(/^WWW-Authenticate: .*error_description="(socket hang up|.*ECONN.*)"/m)
  })

  it('tells the truth of the claim in the header', async () => {
    issuer.up()
    const answer = await REQUESTS['a token for another audience']?.(scene)
    expect(answer).toMatch(/^WWW-Authenticate: .*error_description="Unexpected 'aud' value"/m)
  })
})
