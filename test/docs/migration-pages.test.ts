import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Express } from 'express'
import type { TestIssuer } from 'express-service-auth/testing'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { type PlacedBlocks, placeCode, readDocument } from './blocks.js'
import { codeBlocks, tableRows } from './markdown.js'
import { REQUESTS, type Scene, SEQUENCES, statusOf } from './migration-requests.js'

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
})
