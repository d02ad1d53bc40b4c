import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { sharedPostgres } from '../../../support/postgres-database.js'
import { until } from '../../../support/until.js'
import type { AnyRunner } from './all-runners.js'
import { LIBRARIES } from './libraries.js'

const postgres = await sharedPostgres()

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

/** The way to Postgres, on which a stop can be played. */
async function openWay() {
  const clients = new Set<Socket>()
  let isStopped = false
  const server = createServer((client) => {
    clients.add(client)
    client.on('error', () => {})
    client.on('close', () => clients.delete(client))
    if (isStopped) {
      client.once('data', () => client.end(READY_AND_ENDED))
      return
    }
    const upstream = connect(postgres.port, '127.0.0.1')
    upstream.on('error', () => {})
    client.pipe(upstream).pipe(client)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const url = new URL(postgres.url)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    async stop() {
      isStopped = true
      for (const client of clients) client.destroy()
      await until('all are closed', async () => clients.size === 0)
    },
    start() {
      isStopped = false
    },
  }
}

const onPg =
  (options: pg.PoolConfig) =>
  async (connectionString: string, max: number): Promise<AnyRunner> => {
    const pool = new pg.Pool({ connectionString, max, ...options })
    return { runner: fromPg(pool), end: () => pool.end() }
  }

const RUNNERS: [string, (url: string, max: number) => Promise<AnyRunner>][] = [
  ['pg by exchanges', onPg({})],
  ['pg by pipeline', onPg({ pipeline: true })],
  ...Object.entries(LIBRARIES).map(([name, open]): (typeof RUNNERS)[number] => [
    name,
    async (url, max) => {
      const { runner, close } = await open(url, max)
      return { runner, end: close }
    },
  ]),
]

const LIMITS = { acquireMs: 10_000, transactionMs: 10_000, statementMs: 10_000 }

// An error that nobody listens for would end the process: it fails the run.
describe.each(RUNNERS)('a connection that is ready and ended in one piece, on %s', (_, open) => {
  test('fails what was to run on it, alone, and the next ones serve', async () => {
    const way = await openWay()
    const { runner, end } = await open(way.url, 1)
    onTestFinished(async () => void (await end()))
    const one = () => runner.query(undefined, 'select 1 as one', [], LIMITS)
    expect(await one()).toEqual([{ one: 1 }])
    await way.stop()
    await expect(one()).rejects.toThrow()
    await expect(runner.transaction(async () => {}, LIMITS)).rejects.toThrow()
    await expect(one()).rejects.toThrow()
    way.start()
    await until('it serves', () =>
      one().then(
        () => true,
        () => false,
      ),
    )
  })
})
