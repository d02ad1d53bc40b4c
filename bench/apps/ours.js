import { createCipheriv, createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import express from 'express'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { importEntry } from '../build.js'
import { bareReadApp, createLargeOrder, createOrder, orderOf, readApp } from './handlers.js'

/** The SDK's default. */
const EXPORT_INTERVAL_MS = 60_000

const CALLERS = { billing: ['orders:read', 'orders:write'], reporting: ['orders:read'] }

const policyOf = ({
  issuer,
  jwksUri,
  tokenCache,
  denylist,
  senderConstraint,
  callers = CALLERS,
}) => ({
  issuer,
  jwksUri,
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers,
  tokenCache,
  denylist,
  // An older build does not know it.
  ...(senderConstraint !== undefined && { senderConstraint }),
})

const oauth2PolicyOf = ({ issuer }) => ({
  tokens: 'oauth2',
  issuer,
  audience: 'orders',
  jwksUri: `${issuer}/jwt/jwks.json`,
  permissionsClaim: 'scope',
  callers: CALLERS,
})

async function open(settings, policy = policyOf(settings)) {
  const { serviceAuth } = await importEntry(settings.build)
  const auth = serviceAuth(policy)
  await auth.ready()
  return auth
}

export async function read(settings, policy) {
  const { requirePermissions } = await importEntry(settings.build)
  return readApp(await open(settings, policy), requirePermissions('orders:read'))
}

export const oauth2Read = (settings) => read(settings, oauth2PolicyOf(settings))

/** Accepts service tokens and OAuth 2.0 tokens of one issuer. */
export const twoPolicyRead = (settings) =>
  read(settings, [policyOf(settings), oauth2PolicyOf(settings)])

/** The same decision without Express. */
export async function authenticateRead(settings) {
  const auth = await open(settings)
  return createServer(async (req, res) => {
    const decision = await auth.authenticate(req, { permissions: 'orders:read' })
    if (decision.outcome !== 'accepted') {
      res.writeHead(decision.status, decision.headers).end(decision.body)
      return
    }
    const body = JSON.stringify(orderOf({ item: 'book', quantity: 2 }))
    res
      .writeHead(200, {
        'Content-Type': 'application/json; charset=utf-8',
        'Content-Length': body.length,
      })
      .end(body)
  })
}

/** The same behind an `acceptOneOf`, whose sessions nobody sends. */
export async function eitherRead(settings) {
  const { acceptOneOf, requirePermissions, serviceCredential, sessionCredential } =
    await importEntry(settings.build)
  const noSession = (_req, res) => res.sendStatus(401)
  const gate = acceptOneOf([
    { name: 'service', ...serviceCredential(await open(settings)) },
    { name: 'user', ...sessionCredential(noSession) },
  ])
  return readApp(gate, requirePermissions('orders:read'))
}

export const bareRead = () => bareReadApp()

/** The least that a read with a new token can be: key by id, signature, the claims that all peers check. */
export async function verifyByHand({ issuer }) {
  const answer = await fetch(`${issuer}/.well-known/jwks.json`)
  const { keys } = await answer.json()
  const keyOf = new Map(keys.map((key) => [key.kid, createPublicKey({ key, format: 'jwk' })]))
  const json = (segment) => JSON.parse(Buffer.from(segment, 'base64url').toString())
  const verifyAsync = promisify(verify)
  async function verifier(req, res, next) {
    const [header, payload, mac] = req.headers.authorization.slice('Bearer '.length).split('.')
    const { alg, kid } = json(header)
    const signature = Buffer.from(mac, 'base64url')
    const signed = Buffer.from(`${header}.${payload}`)
    const isSigned =
      alg === 'RS256' && (await verifyAsync('sha256', signed, keyOf.get(kid), signature))
    const claims = isSigned ? json(payload) : {}
    const { iss, aud, exp } = claims
    if (iss !== issuer || aud !== 'orders' || !(exp > Date.now() / 1000)) {
      res.sendStatus(401)
      return
    }
    req.auth = claims
    next()
  }
  return readApp(verifier, (req, res, next) => {
    if (req.auth.permissions.includes('orders:read')) next()
    else res.sendStatus(403)
  })
}

/** Refuses every request unread: the floor of a flood. */
export function refuseAll() {
  const body = JSON.stringify({ type: 'about:blank', title: 'Unauthorized', status: 401 })
  const head = { 'Content-Type': 'application/problem+json', 'Content-Length': body.length }
  return express().use((_req, res) => {
    res.writeHead(401, head).end(body)
  })
}

/** A read with the live denylist of this prefix. */
export async function denylistRead({ prefix, ...settings }) {
  const { redisDenylist } = await importEntry(settings.build, './redis')
  const redis = new Redis(settings.redisUrl, { lazyConnect: true })
  const denylist = redisDenylist(redis, { prefix })
  return await read({ ...settings, denylist })
}

/** A read that is counted by the real SDK and passed to a log, which has nothing to write. */
export async function observedRead(settings) {
  const { logDecisions, requirePermissions } = await importEntry(settings.build)
  const { instrument } = await importEntry(settings.build, './otel')
  const auth = await open(settings)
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA)
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: EXPORT_INTERVAL_MS,
  })
  instrument({ serviceAuth: auth, meterProvider: new MeterProvider({ readers: [reader] }) })
  logDecisions(pino())
  setInterval(() => exporter.reset(), EXPORT_INTERVAL_MS)
  return readApp(auth, requirePermissions('orders:read'))
}

/** A write behind `serviceAuth`; what is given stands behind the body parser. */
export async function write(settings, ...handlers) {
  const { requirePermissions } = await importEntry(settings.build)
  const app = express()
  app.use(await open(settings))
  app.post('/orders', requirePermissions('orders:write'), express.json(), ...handlers)
  return app
}

export const plainWrite = (settings) => write(settings, createOrder)

/** Patient: a machine that stalls for a moment is no fault that is measured here. */
export async function storeOf({ build, redisUrl, client = new Redis(redisUrl) }) {
  const { redisStore } = await importEntry(build, './redis')
  return redisStore(client, { timeoutMs: 5000 })
}

export async function idempotentWrite(settings) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  const guard = requireIdempotencyKey({ store: await storeOf(settings) })
  return write(settings, guard, createOrder)
}

/** The settings for a store over node-redis. */
async function overNodeRedis(settings) {
  const { createClient } = await import('redis')
  return { ...settings, client: createClient({ url: settings.redisUrl }) }
}

export const idempotentWriteOverNodeRedis = async (settings) =>
  idempotentWrite(await overNodeRedis(settings))

export const singleUseWriteOverNodeRedis = async (settings) =>
  singleUseWrite(await overNodeRedis(settings))

export async function largeWrite(settings) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  const guard = requireIdempotencyKey({ store: await storeOf(settings) })
  return write(settings, guard, createLargeOrder)
}

export async function encryptedWrite(settings) {
  const { encryptedStore, requireIdempotencyKey } = await importEntry(settings.build)
  const keys = { '2026-01': randomBytes(32) }
  const store = encryptedStore(await storeOf(settings), { keys, current: '2026-01' })
  return write(settings, requireIdempotencyKey({ store }), createLargeOrder)
}

/** The least that encryption can be: a nonce, one call of AES-GCM and its tag. Nothing reads it again. */
export async function encryptedByHand(settings) {
  const { requireIdempotencyKey } = await importEntry(settings.build)
  const inner = await storeOf(settings)
  const key = randomBytes(32)
  function seal(result) {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    const sealed = [nonce, cipher.update(result), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat(sealed)
  }
  const settle = (run, ending) => inner.settle(run, { ...ending, result: seal(ending.result) })
  const guard = requireIdempotencyKey({ store: { ...inner, settle } })
  return write(settings, guard, createLargeOrder)
}

export async function singleUseWrite(settings) {
  const { requireSingleUse } = await importEntry(settings.build)
  const guard = requireSingleUse({ store: await storeOf(settings) })
  return write(settings, guard, createOrder)
}

const LEASE_MS = 60_000
const RETENTION_MS = 86_400_000

/** The least that an idempotent write can be: the key is taken, then the result is kept. */
export function writeByHand(settings) {
  const redis = new Redis(settings.redisUrl)
  return write(settings, async (req, res) => {
    const key = `by-hand:${req.headers['idempotency-key']}`
    const taken = await redis.set(key, 'running', 'PX', LEASE_MS, 'NX')
    if (taken === null) {
      res.sendStatus(409)
      return
    }
    const order = orderOf(req.body)
    await redis.set(key, JSON.stringify(order), 'PX', RETENTION_MS)
    res.status(201).json(order)
  })
}

/**
 * A middleware as a team writes it: it compares the request and replays what `res.send` got. It has no
 * lease, retries no lost reply, and sees no other way to answer.
 */
export function keyByHand(settings) {
  const redis = new Redis(settings.redisUrl)
  return write(
    settings,
    async (req, res, next) => {
      const key = `by-hand:${req.service.name}:${req.headers['idempotency-key']}`
      const text = JSON.stringify([req.originalUrl, req.body])
      const request = createHash('sha256').update(text).digest('base64url')
      const taken = await redis.set(key, JSON.stringify({ request }), 'PX', LEASE_MS, 'NX')
      if (taken === null) {
        answerAgain(res, request, JSON.parse(await redis.get(key)))
        return
      }
      const { send } = res
      res.send = (body) => {
        res.send = send
        const answer = { status: res.statusCode, type: res.get('Content-Type'), body }
        redis
          .set(key, JSON.stringify({ request, answer }), 'PX', RETENTION_MS)
          .finally(() => res.send(body))
        return res
      }
      next()
    },
    createOrder,
  )
}

function answerAgain(res, request, record) {
  if (record.request !== request) res.sendStatus(422)
  else if (record.answer === undefined) res.sendStatus(409)
  else res.status(record.answer.status).type(record.answer.type).send(record.answer.body)
}
