import { execFile, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import express from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { createTestIssuer } from 'express-service-auth/testing'
import pino from 'pino'
import { afterAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { announceDecision } from '../../../src/base/decision/decision-event.js'
import { announceIdempotency } from '../../../src/base/decision/idempotency-event.js'
import { announceKeySet } from '../../../src/base/decision/key-set-event.js'
import { announceDenylist, callStore } from '../../../src/base/decision/store-event.js'
import { issuer } from '../issuer/issuer.js'
import { makeSigningKey, tokenFrom } from '../issuer/signing-keys.js'
import { openExchange } from '../network/raw-exchange.js'
import { startReceiver } from '../receiver/receiver.js'
import { serve } from '../receiver/serve.js'
import { startRedis } from '../redis/redis.js'
import { knowEnvironment, knowSecret, searchedExporter, searchedLogger } from './index.js'
import { createSecretSearch, type SecretSearch } from './secret-search.js'
import { beginSession, currentSearch, recordOutput } from './session.js'

/** What comes out here on purpose is told to a search of each test's own. */
let planted: SecretSearch
const ofFile = currentSearch()
beforeEach(() => {
  planted = createSecretSearch()
  beginSession(planted)
  onTestFinished(() => beginSession(ofFile))
})

const served = await serve((_request, response) => void response.end())
afterAll(() => served.close())

const NOBODY = 'http://127.0.0.1:2'

/** Each passes a secret to the search, and returns it or a part of it. */
const WAYS_IN: Record<string, (secret: string) => string | Promise<string>> = {
  async 'a token by fetch'() {
    const own = await createTestIssuer({ http: false })
    const token = own.token()
    await fetch(served.url, { headers: { authorization: `Bearer ${token}` } })
    return token.slice(-100)
  },
  async 'a key by request'(secret) {
    const sent = request(served.url, { headers: { 'Idempotency-Key': `"${secret}"` } }).end()
    await once(sent, 'response')
    return secret
  },
  async 'a token by fetch that no receiver gets'(secret) {
    await fetch(NOBODY, { headers: { authorization: `Bearer ${secret}` } }).catch(() => {})
    return secret
  },
  async 'a key by request that no receiver gets'(secret) {
    await once(request(NOBODY, { headers: { 'idempotency-key': secret } }).end(), 'error')
    return secret
  },
  async 'a token on a socket'(secret) {
    const exchange = openExchange(served.port)
    exchange.send({ headers: [`authorization: bearer ${secret}`, 'Connection: close'] })
    await exchange.closed
    return secret
  },
  'a token that is only made': () => issuer.token().slice(-30),
  'a token of a key that is only made': () => tokenFrom(makeSigningKey('k')).slice(-30),
  'a signature as bytes': () =>
    Buffer.from(issuer.token().split('.')[2] ?? '', 'base64url').toString('hex'),
  async 'the API key of the core'(secret) {
    await fetch(served.url, { headers: { 'api-key': secret } })
    return secret
  },
  'the environment of a program'(secret) {
    knowEnvironment({ REDIS_URL: `redis://app:${secret}@127.0.0.1` })
    return secret
  },
  'a malformed address in the environment of a program'(secret) {
    knowEnvironment({ REDIS_URL: `redis://:${secret}%21@localhost:port` })
    return `${secret}!`.slice(-20)
  },
  async 'the password of a server'(secret) {
    const server = await startRedis({ config: { requirepass: secret } })
    await server.stop()
    return secret
  },
  async 'the password of a user of Redis'(secret) {
    const server = await startRedis()
    await server.command('ACL', 'SETUSER', 'app', 'on', `>${secret}`)
    await server.stop()
    return secret
  },
  'an encryption key'() {
    const key = randomBytes(32)
    knowSecret('an encryption key', key)
    return key.toString('base64url')
  },
}

it.each(Object.entries(WAYS_IN))('a secret is known that goes in: %s', async (_, pass) => {
  recordOutput('here', await pass(randomUUID()))
  expect(planted.settle()).toContainEqual(expect.stringMatching(/^here .* holds an? /))
})

const printing = (stream: string, text: string): string[] => [
  '-e',
  `process.${stream}.write(${JSON.stringify(text)})`,
]

/** Each puts a secret into the output that it is named after. */
const WAYS_OUT: Record<string, (secret: string) => unknown> = {
  'the channel express-service-auth:decision': (keyId) =>
    announceDecision([], { outcome: 'accepted', by: 'serviceAuth', keyId }),
  'the channel express-service-auth:keys': (secret) =>
    announceKeySet(`https://core.example/${secret}`, { type: 'expired' }),
  'the channel express-service-auth:idempotency': (record) =>
    announceIdempotency(() => ({
      by: 'requireIdempotencyKey',
      caller: 'billing',
      outcome: 'refused',
      reason: 'key_reused',
      status: 422,
      record,
    })),
  'the channel express-service-auth:denylist': (secret) =>
    announceDenylist(() => [{ type: 'stale', reason: secret as never }]),
  'the channel express-service-auth:store': (secret) =>
    callStore(secret as never, async () => true),
  'console.warn': (secret) => console.warn('refused: %s', secret),
  'console.error': (authorization) => console.error({ headers: { authorization } }),
  'the log, warn': (key) =>
    searchedLogger(pino({}, { write() {} })).warn({ key: { of: key } }, 'refused'),
  async OpenTelemetry(secret) {
    const exporter = searchedExporter(new InMemorySpanExporter())
    const provider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    })
    provider.getTracer('test').startSpan('request').setAttribute('key_id', secret).end()
    await provider.shutdown()
  },
  async 'OpenTelemetry '(secret) {
    const exporter = searchedExporter(new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE))
    const reader = new PeriodicExportingMetricReader({ exporter })
    const provider = new MeterProvider({ readers: [reader] })
    provider.getMeter('test').createCounter('decisions').add(1, { 'error.type': secret })
    await provider.shutdown()
  },
  'an error': (secret) => expect(new ServiceAuthError('unfit', secret)).toBeInstanceOf(Error),
  'an error ': (secret) =>
    expect(() => {
      throw new TypeError(secret)
    }).toThrow(TypeError),
  async 'an error  '(secret) {
    const cause = Object.defineProperty(new Error('WRONGPASS'), 'command', {
      value: { name: 'auth', args: [secret] },
      enumerable: false,
    })
    const fault = new ServiceAuthError('unavailable', 'Redis is unreachable', { cause })
    await expect(Promise.reject(fault)).rejects.toThrow('unreachable')
  },
  async 'an error that came to next(error)'(secret) {
    const error = new Error('failed', { cause: { args: [Buffer.from(secret)] } })
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use((_request, _response, next) => next(error)),
    })
    await receiver.call()
  },
  'stdout of the tests': (secret) => process.stdout.write(`${secret}\n`),
  'stderr of the tests': (secret) => process.stderr.write(Buffer.from(`${secret}\n`)),
  async 'stdout of the program node'(secret) {
    const child = spawn(process.execPath, printing('stdout', secret))
    child.stdout.resume()
    await once(child, 'close')
  },
  async 'stderr of the program node'(secret) {
    const child = spawn(process.execPath, printing('stderr', secret))
    for await (const chunk of child.stderr) expect(chunk.length).toBeGreaterThan(0)
  },
  'stdout of the program node ': (secret) =>
    promisify(execFile)(process.execPath, printing('stdout', secret)),
}

it.each(Object.entries(WAYS_OUT))('a secret is found that comes out of %s', async (sink, leak) => {
  const secret = randomUUID()
  knowSecret('an API key', secret)
  await leak(secret)
  const findings = planted
    .settle()
    .filter((finding) => finding.endsWith('an API key or a part of it'))
  expect(findings).toContainEqual(expect.stringContaining(`${sink.trim()} (`))
})

it('a secret is found that comes out of a console that is spied on', () => {
  const secret = randomUUID()
  knowSecret('an API key', secret)
  vi.spyOn(console, 'info').mockImplementation(() => {})
  console.info(secret)
  onTestFinished(() => expect(planted.settle().join()).toMatch(/^console.info .*an API key/))
})

const IS_PLANTED = process.env['PLANT_A_SECRET'] === 'yes'

if (IS_PLANTED) {
  it('fails its file', () => {
    const secret = randomUUID()
    beginSession(ofFile)
    knowSecret('an API key', secret)
    console.log(secret)
  })
} else {
  it('a secret that comes out fails its file, and no test', async () => {
    const root = fileURLToPath(new URL('../../..', import.meta.url))
    const vitest = join(root, 'node_modules/vitest/vitest.mjs')
    const args = ['run', '--reporter=json', '-t', 'fails its file', import.meta.filename]
    const env = { ...process.env, PLANT_A_SECRET: 'yes', VITEST_REPORT: undefined }
    const ran = promisify(execFile)(process.execPath, [vitest, ...args], { cwd: root, env })
    const { code, stdout } = await ran.catch((error) => error)
    const [{ status, message, assertionResults }] = JSON.parse(
      stdout.slice(stdout.indexOf('{"num')),
    ).testResults
    expect([code, status]).toEqual([1, 'failed'])
    expect(message).toMatch(/A secret has come out:\nwhile «fails its file» ran, console.log /)
    const failed = assertionResults.filter((one: { status: string }) => one.status === 'failed')
    expect(failed).toEqual([])
  })
}
