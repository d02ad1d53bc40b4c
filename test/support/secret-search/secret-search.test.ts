import { randomBytes, randomUUID } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request } from 'node:http'
import express from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { afterAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { issuer } from '../issuer/issuer.js'
import { makeSigningKey, tokenFrom } from '../issuer/signing-keys.js'
import { openExchange } from '../network/raw-exchange.js'
import { startReceiver } from '../receiver/receiver.js'
import { serve } from '../receiver/serve.js'
import { startRedis } from '../redis/redis.js'
import { knowEnvironment, knowSecret, recordOutput } from './index.js'
import { createSecretSearch, LEAK_LENGTH, type SecretSearch } from './secret-search.js'
import { beginSession, currentSearch } from './session.js'

// A search that finds nothing looks like a clean suite. So each way in and out has a secret planted in it, which goes
// to a search of the test's own.
let planted: SecretSearch
const ofFile = currentSearch()
beforeEach(() => {
  planted = createSecretSearch()
  beginSession(planted)
  onTestFinished(() => beginSession(ofFile))
})

const served = await serve((_request, response) => void response.end())
afterAll(() => served.close())

/** Each passes a secret to the search, and returns it or a part of it. */
const WAYS_IN: Record<string, (secret: string) => string | Promise<string>> = {
  async 'a token by fetch'(secret) {
    await fetch(served.url, { headers: { authorization: `Bearer ${secret}` } })
    return secret.slice(-LEAK_LENGTH)
  },
  async 'a key by request that no receiver gets'(secret) {
    const headers = { 'Idempotency-Key': `"${secret}"` }
    await once(request('http://127.0.0.1:2', { headers }).end(), 'error')
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
  async 'the API key of the core'(secret) {
    await fetch(served.url, { headers: { 'api-key': secret } })
    return secret
  },
  'the environment of a program'(secret) {
    knowEnvironment({ REDIS_URL: `redis://app:${secret}@127.0.0.1` })
    return secret
  },
  async 'the password of a server'(secret) {
    await (await startRedis({ config: { requirepass: secret } })).stop()
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
  expect(planted.settle()).toContainEqual(expect.stringMatching(/^here holds an? /))
})

/** Each puts a secret into the output that it is named after. */
const WAYS_OUT: Record<string, (secret: string) => unknown> = {
  ...Object.fromEntries(
    ['decision', 'keys', 'idempotency', 'denylist', 'store', 'migration'].map((name) => [
      `the channel express-service-auth:${name}`,
      (secret: string) => channel(`express-service-auth:${name}`).publish({ event: { secret } }),
    ]),
  ),
  'console.warn': (secret) => console.warn('refused: %s', secret),
  'console.error': (authorization) => console.error({ headers: { authorization } }),
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
}

it.each(Object.entries(WAYS_OUT))('a secret is found that comes out of %s', async (sink, leak) => {
  const secret = randomUUID()
  knowSecret('an API key', secret)
  await leak(secret)
  expect(planted.settle()).toContain(`${sink.trim()} holds an API key or a part of it`)
})

it('a secret is found that comes out of a console that is spied on', () => {
  const secret = randomUUID()
  knowSecret('an API key', secret)
  vi.spyOn(console, 'info').mockImplementation(() => {})
  console.info(secret)
  onTestFinished(() => expect(planted.settle().join()).toMatch(/^console.info .*an API key/))
})

it('a secret is found by 16 of its characters, a short one whole', () => {
  const [long, short] = [randomUUID(), 'pa55-w0rd']
  for (const secret of [long, short, 'secret', 'a'.repeat(32)]) knowSecret('a password', secret)
  recordOutput('near', [long.slice(0, LEAK_LENGTH - 1), short.slice(1), 'secret', 'a'.repeat(32)])
  expect(planted.settle()).toEqual([])
  recordOutput('part', `.${long.slice(5, 5 + LEAK_LENGTH)}.`)
  recordOutput('short', `as ${short}!`)
  expect(planted.settle()).toEqual(
    ['part', 'short'].map((sink) => `${sink} holds a password or a part of it`),
  )
})

it.each(['latin1', 'base64', 'base64url', 'hex'] as const)('a key is found as %s', (form) => {
  const key = randomBytes(32)
  recordOutput('before it is known', key.toString(form))
  knowSecret('an encryption key', key)
  expect(planted.settle()).toHaveLength(1)
})

it('a secret is found in floods of output and of secrets', () => {
  const token = randomBytes(400).toString('base64url')
  knowSecret('a token', token)
  const line = (index: number): string => `${index} `.repeat(2000)
  for (let index = 0; index < 100; index++) recordOutput('the log', line(index))
  recordOutput('the log', token)
  for (let index = 0; index < 100; index++) recordOutput('the log', line(-index))
  for (let index = 0; index < 40; index++) knowSecret('a token', randomBytes(25_000))
  expect(planted.settle()).toHaveLength(1)
})

it('a token that nobody has told of is found by its form', () => {
  const header = Buffer.from('{"alg":"RS256","kid":"d-1"}').toString('base64url')
  recordOutput('the log', `token: ${header}.${randomBytes(40).toString('base64url')}`)
  expect(planted.settle()).toEqual(['the log holds text in the form of a token'])
})
