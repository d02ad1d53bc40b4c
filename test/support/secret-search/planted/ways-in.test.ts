import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { createTestIssuer } from 'express-service-auth/testing'
import { Redis } from 'ioredis'
import { afterAll, it } from 'vitest'
import { issuer } from '../../issuer/issuer.js'
import { makeSigningKey, tokenFrom } from '../../issuer/signing-keys.js'
import { openExchange } from '../../network/raw-exchange.js'
import { serve } from '../../receiver/serve.js'
import { startRedis } from '../../redis/redis.js'
import { knowEnvironment, knowRedisClient, knowSecret } from '../index.js'

// Each test passes a new secret to the search in another way, and prints it.

const served = await serve((_request, response) => void response.end())
afterAll(() => served.close())

it('a token by fetch', async () => {
  const own = await createTestIssuer({ http: false })
  const token = own.token()
  await fetch(served.url, { headers: { authorization: `Bearer ${token}` } })
  console.log(token.slice(-100))
})

it('a key by request', async () => {
  const key = randomUUID()
  const sent = request(served.url, { headers: { 'Idempotency-Key': `"${key}"` } }).end()
  await once(sent, 'response')
  console.log(key)
})

it('a token that no receiver gets', async () => {
  const token = randomUUID()
  await fetch('http://127.0.0.1:9', { headers: { authorization: `Bearer ${token}` } }).catch(
    () => {},
  )
  const sent = request('http://127.0.0.1:9', { headers: { 'idempotency-key': token } }).end()
  await once(sent, 'error')
  console.log(token)
})

it('a token on a socket', async () => {
  const token = randomUUID()
  const exchange = openExchange(served.port)
  exchange.send({ headers: [`authorization: bearer ${token}`, 'Connection: close'] })
  await exchange.closed
  console.log(token)
})

it('a token that is only made', () => {
  console.log(issuer.token().slice(-30))
})

it('a token of a key that is only made', () => {
  console.log(tokenFrom(makeSigningKey('k')).slice(-30))
})

it('a signature as bytes', () => {
  console.log(Buffer.from(issuer.token().split('.')[2] ?? '', 'base64url').toString('hex'))
})

it('the API key of the core', async () => {
  const key = randomUUID()
  await fetch(served.url, { headers: { 'api-key': key } })
  console.log(key)
})

it('the environment of a program', () => {
  const password = randomUUID()
  knowEnvironment({ REDIS_URL: `redis://app:${password}@127.0.0.1` })
  console.log(password)
})

it('a malformed address in the environment of a program', () => {
  const password = randomUUID()
  knowEnvironment({ REDIS_URL: `redis://:${password}@localhost:port` })
  console.log(password)
})

it('the password of a server', async () => {
  const password = randomUUID()
  const server = await startRedis({ config: { requirepass: password } })
  await server.stop()
  console.log(password)
})

it('the password of a user of Redis', async () => {
  const password = randomUUID()
  const server = await startRedis()
  await server.command('ACL', 'SETUSER', 'app', 'on', `>${password}`)
  await server.stop()
  console.log(password)
})

it('the password of a client', () => {
  const password = randomUUID()
  knowRedisClient(new Redis({ lazyConnect: true, password }))
  console.log(password)
})

it('an encryption key', () => {
  const key = randomBytes(32)
  knowSecret('an encryption key', key)
  console.log(key.toString('base64url'))
})
