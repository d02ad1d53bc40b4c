import { randomBytes, randomUUID } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request } from 'node:http'
import { ServiceAuthError } from 'express-service-auth'
import { afterAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { issuer } from '../issuer/issuer.js'
import { makeSigningKey, tokenFrom } from '../issuer/signing-keys.js'
import { openExchange } from '../network/raw-exchange.js'
import { serve } from '../receiver/serve.js'
import { startRedis } from '../redis/redis.js'
import {
  beginSearch,
  continueSearch,
  currentSearch,
  findLeaks,
  knowSecret,
  LEAK_LENGTH,
  recordOutput,
} from './index.js'

// A search that finds nothing looks like a clean suite. So each way in and out has a secret planted in it, which goes
// to a search of the test's own.
let planted: ReturnType<typeof beginSearch>
const ofFile = currentSearch()
beforeEach(() => {
  planted = beginSearch()
  onTestFinished(() => continueSearch(ofFile))
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
    return secret.slice(0, LEAK_LENGTH)
  },
  async 'a token on a socket'(secret) {
    const exchange = openExchange(served.port)
    exchange.send({ headers: [`authorization: bearer ${secret}`, 'Connection: close'] })
    await exchange.closed
    return secret
  },
  'the claims of a token that is only made': () => issuer.token().split('.')[1] ?? '',
  'a token of a key that is only made': () => tokenFrom(makeSigningKey('k')).slice(-30),
  async 'the API key of the core'(secret) {
    await fetch(served.url, { headers: { 'api-key': secret } })
    return secret
  },
  async 'the password of a server'(secret) {
    await (await startRedis({ config: { requirepass: secret } })).stop()
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
  expect(findLeaks(planted)).toContainEqual(expect.stringMatching(/^here holds an? /))
})

/** Each puts a secret into the output that it is named after. */
const WAYS_OUT: Record<string, (secret: string) => unknown> = {
  'the channel express-service-auth:decision': (secret) =>
    channel('express-service-auth:decision').publish({ event: { secret } }),
  'console.error': (authorization) => console.error({ headers: { authorization } }),
  'an error': (secret) => expect(new ServiceAuthError('unfit', secret)).toBeInstanceOf(Error),
  'an error ': (secret) =>
    expect(() => {
      throw new TypeError(secret)
    }).toThrow(TypeError),
  async 'an error  '(secret) {
    const cause = Object.defineProperty(new Error('WRONGPASS'), 'command', {
      value: { name: 'auth', args: [Buffer.from(secret)] },
      enumerable: false,
    })
    const fault = new ServiceAuthError('unavailable', 'Redis is unreachable', { cause })
    await expect(Promise.reject(fault)).rejects.toThrow('unreachable')
  },
  'stderr of the tests': (secret) => process.stderr.write(Buffer.from(`${secret}\n`)),
}

it.each(Object.entries(WAYS_OUT))('a secret is found that comes out of %s', async (sink, leak) => {
  const secret = randomUUID()
  knowSecret('an API key', secret)
  await leak(secret)
  expect(findLeaks(planted)).toContain(`${sink.trim()} holds an API key or a part of it`)
})

it('a secret is found that comes out of a console that is spied on', () => {
  const secret = randomUUID()
  knowSecret('an API key', secret)
  vi.spyOn(console, 'info').mockImplementation(() => {})
  console.info(secret)
  onTestFinished(() => expect(findLeaks(planted).join()).toMatch(/^console.info .*an API key/))
})

it('a short secret is found whole, and neither a word nor a repeated letter is one', () => {
  for (const secret of ['pa55-w0rd', 'secret', 'a'.repeat(32)]) knowSecret('a password', secret)
  recordOutput('near', ['pa55-w0r', 'secret', 'a'.repeat(32)])
  expect(findLeaks(planted)).toEqual([])
  recordOutput('here', 'as pa55-w0rd!')
  expect(findLeaks(planted)).toEqual(['here holds a password or a part of it'])
})

it('a secret is found in a flood of output', () => {
  const token = randomBytes(400).toString('base64url')
  knowSecret('a token', token)
  const line = (index: number): string => `${index} `.repeat(2000)
  for (let index = 0; index < 100; index++) recordOutput('the log', line(index))
  recordOutput('the log', token)
  for (let index = 0; index < 100; index++) recordOutput('the log', line(-index))
  expect(findLeaks(planted)).toHaveLength(1)
})

it('a token that nobody has told of is found by its form', () => {
  const header = Buffer.from('{"alg":"RS256","kid":"d-1"}').toString('base64url')
  recordOutput('the log', `token: ${header}.${randomBytes(40).toString('base64url')}`)
  expect(findLeaks(planted)).toEqual(['the log holds text in the form of a token'])
})
