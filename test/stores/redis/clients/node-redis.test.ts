import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { Redis } from 'ioredis'
import { RESP_TYPES, type RedisClientOptions } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NODE_REDIS } from '../../../support/redis/redis-clients.js'
import { makeClientCertificates } from '../../../support/tls/client-certificates.js'
import { answers, expectWorks, proxyOf, sharedRedis, storeOn } from '../kit.js'

const APP = { username: 'app', password: 'p:ss/word@1' }
const SOCKET_FILE = join(tmpdir(), `esa-${randomUUID()}.sock`)
const server = await sharedRedis({ unixsocket: SOCKET_FILE })
const { host, port } = server
afterAll(() => rmSync(SOCKET_FILE, { force: true }))
let tls: Awaited<ReturnType<typeof startTls>>
beforeAll(async () => {
  tls = await startTls()
  await server.command('ACL', 'SETUSER', 'app', 'on', `>${APP.password}`, '~*', '&*', '+@all')
  return () => tls.close()
})

const providerOf = (login: typeof APP) => ({
  type: 'async-credentials-provider' as const,
  credentials: async () => login,
})

const PATIENT = { timeoutMs: 5000 }

/** Options of the app's client, and how its server lists the store's connection. */
const OPTIONS: [string, () => RedisClientOptions, RegExp?][] = [
  ['RESP 3', () => ({ RESP: 3 })],
  ['client-side caching', () => ({ RESP: 3, clientSideCache: { ttl: 0, maxEntries: 9 } })],
  [
    'texts as buffers, and numbers as strings',
    () => ({
      commandOptions: {
        typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String },
      },
    }),
  ],
  ['no offline queue', () => ({ disableOfflineQueue: true, commandsQueueMaxLength: 1 })],
  ['pings', () => ({ pingInterval: 1 })],
  ['no reconnecting', () => ({ socket: { host, port, reconnectStrategy: false } })],
  ['a socket’s options', () => ({ socket: { host, port, family: 4, noDelay: false } })],
  ['the path of a socket', () => ({ socket: { path: SOCKET_FILE, tls: false } }), /:0 .* flags=U/],
  ['a database', () => ({ database: 3 }), / db=3 .* user=default/],
  [
    'a URL with login and database',
    () => ({
      url: `redis://app:${encodeURIComponent(APP.password)}@${host}:${port}/2`,
      socket: {},
    }),
    / db=2 .* user=app/,
  ],
  ['a login', () => APP, / user=app/],
  [
    'a provider of credentials',
    () => ({
      credentialsProvider: providerOf(APP),
    }),
    / user=app/,
  ],
]

const silent = (): void => {}

describe.each(NODE_REDIS)('a client of $major', ({ createClient }) => {
  const newClient = (options: RedisClientOptions = {}) => {
    const client = createClient({ socket: { host, port }, ...options } as RedisClientOptions)
    return client.on('error', silent)
  }
  type Client = ReturnType<typeof newClient>

  it.each(OPTIONS)('with %s gives a store that works', async (_, options, listed = / db=0 /) => {
    const name = randomUUID()
    const store = storeOn(newClient({ name, ...options() }), PATIENT)
    await expectWorks(store)
    const admin = new Redis({ host, port })
    const clients = String(await admin.client('LIST')).split('\n')
    admin.disconnect()
    const own = clients.filter((line) => line.includes(`name=${name}`))
    expect(own).toEqual([expect.stringMatching(listed)])
    expect(own[0]).not.toContain('resp=3')
  })

  const STATES: [string, boolean, (client: Client) => unknown][] = [
    ['never connected', false, silent],
    ['connected', true, (client) => client.connect()],
    ['destroyed', false, async (client) => (await client.connect()).destroy()],
    ['in subscriber mode', true, async (client) => (await client.connect()).subscribe('n', silent)],
    ['blocked', true, async (client) => void (await client.connect()).blPop('n', 0).catch(silent)],
  ]

  it.each(STATES)('that is %s serves a store, and stays so', async (_, isOpen, bring) => {
    const client = newClient()
    await bring(client)
    await expectWorks(storeOn(client, PATIENT))
    expect(client.isOpen).toBe(isOpen)
  })

  it('may be a view of one with other options of commands', async () => {
    const buffers = newClient().withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })
    const aborted = newClient().withAbortSignal(AbortSignal.abort())
    for (const view of [buffers, aborted]) await expectWorks(storeOn(view as Client, PATIENT))
  })

  it('with time limits does not pass them to the store', async () => {
    const proxy = await proxyOf(server)
    const socket = { host, port: proxy.port, socketTimeout: 20, connectTimeout: 20 }
    const store = storeOn(newClient({ socket, commandOptions: { timeout: 5 } }), PATIENT)
    expect(await answers(store)).toBe(true)
    proxy.delayReplies(100)
    expect(await answers(store)).toBe(true)
    expect(proxy.opened).toBe(1)
  })

  it('with a stream of credentials serves a store, which unsubscribes when it is closed', async () => {
    let subscriptions = 0
    const provider = {
      type: 'streaming-credentials-provider' as const,
      async subscribe() {
        subscriptions += 1
        const subscription = { dispose: () => void --subscriptions }
        return [APP, subscription] as [typeof APP, typeof subscription]
      },
      onReAuthenticationError: silent,
    }
    const store = storeOn(newClient({ credentialsProvider: provider }), PATIENT)
    await expectWorks(store)
    expect(subscriptions).toBe(1)
    store.close()
    expect(subscriptions).toBe(0)
  })

  it('with TLS serves a store if it trusts the server', async () => {
    const socket = { host, port: tls.port, tls: true as const }
    await expectWorks(storeOn(newClient({ socket: { ...socket, ca: tls.ca } }), PATIENT))
    const url = `rediss://${host}:${tls.port}`
    await expectWorks(storeOn(newClient({ url, socket: { tls: true, ca: tls.ca } }), PATIENT))
    await expect(storeOn(newClient({ socket })).check()).rejects.toThrow(/unable to verify/)
  })
})

/** Puts TLS before the server, with a certificate of an authority of its own. */
async function startTls() {
  const certificates = await makeClientCertificates()
  const front = createTlsServer({ ...certificates.server }, (socket) => {
    const inner = connectTcp({ host, port })
    pipeline(socket, inner, socket, silent)
  })
  front.on('tlsClientError', silent)
  front.listen(0, host)
  await once(front, 'listening')
  return {
    close: () => void front.close(),
    port: (front.address() as AddressInfo).port,
    ca: certificates.ca,
  }
}
