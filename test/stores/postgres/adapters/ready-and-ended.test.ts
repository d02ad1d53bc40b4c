import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'

const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

/** What a server that is stopped sends to a client that has just come, in one piece. */
const READY_AND_ENDED = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('Z', Buffer.from('I')),
  message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0')),
])

const server = createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => socket.end(READY_AND_ENDED))
})
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
afterAll(() => server.close())

function open(options: pg.PoolConfig): pg.Pool {
  const { port } = server.address() as AddressInfo
  const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'orders', max: 1, ...options })
  onTestFinished(() => pool.end())
  return pool
}

const LIMITS = { acquireMs: 10_000, transactionMs: 10_000, statementMs: 10_000 }

// An error that nobody listens for would end the process: it fails the run.
describe.each([
  ['exchanges', {}],
  ['pipeline', { pipeline: true }],
] as const)('a connection that is ready and ended in one piece, fromPg by %s', (_name, options) => {
  test('fails its transaction alone', async () => {
    const pool = open(options)
    const running = fromPg(pool).transaction((tx) => tx.query('select 1'), LIMITS)
    await expect(running).rejects.toThrow()
    expect(pool.totalCount).toBe(0)
  })

  test('fails its statement alone', async () => {
    const pool = open(options)
    const running = fromPg(pool).query(undefined, 'select 1', [], LIMITS)
    await expect(running).rejects.toThrow()
    expect(pool.totalCount).toBe(0)
  })
})
