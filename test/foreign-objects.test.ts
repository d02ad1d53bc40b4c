import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { IncomingMessage, OutgoingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { Duplex, Readable, Stream, Writable } from 'node:stream'
import express, { type Express, type RequestHandler } from 'express'
import type { TestIssuer } from 'express-service-auth/testing'
import express4 from 'express4'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestIssuer } from './support/issuer/test-issuer.js'
import { call, newKey } from './support/receiver/order-calls.js'
import { serve } from './support/receiver/serve.js'

/** Everything of Node and Express that all requests share. */
const SHARED: readonly object[] = [
  EventEmitter.prototype,
  Stream.prototype,
  Readable.prototype,
  Writable.prototype,
  Duplex.prototype,
  Socket.prototype,
  IncomingMessage.prototype,
  OutgoingMessage.prototype,
  ServerResponse.prototype,
  Server.prototype,
  express.request,
  express.response,
  express4.request,
  express4.response,
]

const descriptors = (): unknown[] =>
  SHARED.map((shared) => Object.getOwnPropertyDescriptors(shared))

/** A further copy of the package in this process. */
async function loadCopy() {
  vi.resetModules()
  return await import('express-service-auth')
}

const symbolsAsText = (keys: readonly PropertyKey[]): string[] => keys.map(String).sort()

describe('What the package does not own', () => {
  let issuer: TestIssuer
  beforeAll(async () => {
    issuer = await createTestIssuer()
  })
  afterAll(() => issuer.close())
  const headers = () => ({ authorization: `Bearer ${issuer.token()}` })

  async function portOf(app: Express): Promise<number> {
    const { port, close } = await serve(app)
    onTestFinished(close)
    return port
  }

  it('is left as it is: no prototype is changed by any guard', async () => {
    const before = descriptors()
    const {
      memoryStore,
      requireIdempotencyKey,
      requirePermissions,
      requireSingleUse,
      serviceAuth,
    } = await loadCopy()
    const store = memoryStore()
    const app = express()
    app.use(serviceAuth(issuer.policy()), requirePermissions('orders:read'))
    app.post(
      '/orders/:id',
      express.json(),
      requireSingleUse({ store }),
      requireIdempotencyKey({ store }),
      (_req, res) => void res.json({ ok: true }),
    )
    const port = await portOf(app)
    const key = newKey()
    for (let time = 0; time < 2; time += 1) {
      expect((await call(port, { key, headers: headers() })).body.toString()).toBe('{"ok":true}')
    }
    expect(descriptors()).toEqual(before)
  })

  it('gets nothing but what the page on foreign objects lists', async () => {
    const { acceptOneOf, memoryStore, requireIdempotencyKey, serviceAuth, serviceCredential } =
      await loadCopy()
    const either = acceptOneOf([
      { name: 'service', ...serviceCredential(serviceAuth(issuer.policy())) },
    ])
    const added: Record<string, string[]> = {}
    let known: Record<string, readonly PropertyKey[]> = {}
    const objectsOf = ({ req, res }: { req: express.Request; res: express.Response }) => ({
      request: req,
      response: res,
      socket: req.socket,
      server: (req.socket as unknown as { server: object }).server,
    })
    const look: RequestHandler = (req, res, next) => {
      known = Object.fromEntries(
        Object.entries(objectsOf({ req, res })).map(([name, object]) => [
          name,
          Reflect.ownKeys(object),
        ]),
      )
      next()
    }
    const app = express()
    app.post(
      '/orders/:id',
      express.json(),
      look,
      either,
      requireIdempotencyKey({ store: memoryStore() }),
      (req, res) => {
        for (const [name, object] of Object.entries(objectsOf({ req, res }))) {
          const keys = Reflect.ownKeys(object).filter((key) => !known[name]?.includes(key))
          added[name] = symbolsAsText(keys)
        }
        res.end()
      },
    )
    await call(await portOf(app), { key: newKey(), headers: headers() })
    expect(added).toEqual({
      request: ['Symbol(express-service-auth request)', 'credential', 'idempotency', 'service'],
      response: [
        'Symbol(express-service-auth response)',
        'appendHeader',
        'destroy',
        'end',
        'flushHeaders',
        'headersSent',
        'removeHeader',
        'setHeader',
        'setHeaders',
        'writableEnded',
        'write',
        'writeHead',
      ],
      socket: ['Symbol(express-service-auth connection)'],
      server: [],
    })
  })

  it('serves two copies of the package side by side, which know nothing of each other', async () => {
    const [first, second] = [await loadCopy(), await loadCopy()]
    expect(first.serviceAuth).not.toBe(second.serviceAuth)
    const policy = issuer.policy()
    const stores = [first.memoryStore(), second.memoryStore()] as const
    let runs = 0
    const app = express()
    app.post(
      '/orders/:id',
      express.json(),
      first.serviceAuth(policy),
      second.serviceAuth(policy),
      first.requireIdempotencyKey({ store: stores[0] }),
      second.requireIdempotencyKey({ store: stores[1] }),
      (req, res) => {
        runs += 1
        res.json({ same: first.serviceOf(req).name === second.serviceOf(req).name })
      },
    )
    app.get(
      '/half',
      first.serviceAuth(policy),
      second.requirePermissions('orders:read'),
      (_req, res) => void res.end('passed'),
    )
    const errors: unknown[] = []
    app.use(((error, _req, res, _next) => {
      errors.push(error)
      res.status(500).end()
    }) as express.ErrorRequestHandler)
    const port = await portOf(app)
    const key = newKey()
    for (let time = 0; time < 2; time += 1) {
      const answer = await call(port, { key, headers: headers() })
      expect(answer.body.toString()).toBe('{"same":true}')
    }
    expect(runs).toBe(1)
    expect((await call(port, { method: 'GET', path: '/half', headers: headers() })).status).toBe(
      500,
    )
    expect(errors).toEqual([expect.objectContaining({ code: 'wrong_wiring' })])
  })
})

/** How code reaches what another library or Node does not document, by what it looks like in the source. */
const PRIVATE_PARTS: Readonly<Record<string, RegExp>> = {
  'a member that begins with _': /(?:\.|\breadonly |\{ ?)_[a-z]\w*(?![\w(]| =>)/i,
  'the defaults of node-redis': /\b(?:app|client|cluster|redis)\.defaults\b/,
  'what ioredis declares with @ignore':
    /(?:\.|\{ )(?:stream|commandQueue|condition|refreshSlotsCache|delayUntilReady)\b/,
  'the connection of pg':
    /\b(?:client|tx)\.connection\b|\.connection\.(?:stream|parse|bind|execute|sync)\b/,
  'a stand-in of a class of Node':
    /\bnew (?:\w+\.)?(?:ServerResponse|IncomingMessage|OutgoingMessage|Socket)\(|Object\.create\(\w+\.prototype/,
}

/** Where code does so nevertheless, and why. */
const ALLOWED: readonly string[] = [
  // body-parser 1 documents no other sign that it has read a body.
  'idempotency/fingerprint.ts: a member that begins with _',
  // The stream of our own connection: one system call for all commands of a turn. Without it nothing fails.
  'stores/redis/connection/ioredis.ts: what ioredis declares with @ignore',
  // Until the buffered response writes its heads by itself.
  'idempotency/buffered-response/head.ts: a stand-in of a class of Node',
]

const withoutCommentsAndTexts = (source: string): string =>
  source
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')
    .replace(/'(?:[^'\\\n]|\\.)*'/g, "''")

const privatePartsIn = (source: string): string[] =>
  Object.entries(PRIVATE_PARTS).flatMap(([part, pattern]) =>
    pattern.test(withoutCommentsAndTexts(source)) ? [part] : [],
  )

describe('A private part of another library', () => {
  it.each([
    ['const { _options } = cluster', 'a member that begins with _'],
    ['cluster._options.rootNodes', 'a member that begins with _'],
    ['interface Cluster { readonly _slots: unknown }', 'a member that begins with _'],
    ['Object.assign(cluster.defaults, login)', 'the defaults of node-redis'],
    ['redis.stream.cork()', 'what ioredis declares with @ignore'],
    ['client.connection.parse(query)', 'the connection of pg'],
    ['new http.ServerResponse(request)', 'a stand-in of a class of Node'],
  ])('is recognised in %j', (source, part) => {
    expect(privatePartsIn(source)).toEqual([part])
  })

  it('is neither read nor written anywhere in the package', () => {
    const root = new URL('../src/', import.meta.url)
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    const found = files
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) =>
        privatePartsIn(readFileSync(new URL(name, root), 'utf8')).map((part) => `${name}: ${part}`),
      )
    expect(found.filter((each) => !ALLOWED.includes(each))).toEqual([])
  })
})
