import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { remoteKeySet, ServiceAuthError, serviceAuth } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeCertificate } from '../../cli/certificates.js'
import {
  type Behaviour,
  hang,
  hangUp,
  refusingUrl,
  respond,
  serve,
} from '../../support/issuer/key-set-server.js'
import { POLICY, shapeOfKey } from '../../support/issuer/signing-keys.js'
import { expectOwnError } from '../../support/receiver/own-error.js'
import { openKeySetServer } from './open-key-set.js'

const KEYS = { keys: [shapeOfKey('a', 2048)] }

async function failureOf(ready: () => Promise<void>): Promise<Error> {
  const failure: unknown = await ready().then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(failure instanceof ServiceAuthError)) throw new Error('no ServiceAuthError')
  expectOwnError(failure, { name: 'ServiceAuthError', code: 'unavailable' })
  return failure
}

describe.each(['serviceAuth', 'remoteKeySet'])('ready() of %s', (by) => {
  const open = (jwksUri: string): { ready(): Promise<void> } => {
    const keySet = remoteKeySet({ jwksUri, timeoutMs: 300 })
    onTestFinished(() => keySet.close())
    return by === 'serviceAuth' ? serviceAuth({ ...POLICY, keySet }) : keySet
  }

  it.each<[string, Behaviour]>([
    ['network, ECONNRESET', hangUp],
    ['timeout', hang],
    ['status', respond('500 Internal Server Error', '')],
    ['malformed', respond('200 OK', '<html>')],
    ['no_usable_key', serve({ keys: [] })],
  ])('names the address without its query, and the reason %s', async (reason, behaviour) => {
    const server = await openKeySetServer(behaviour)
    const { ready } = open(`${server.url}?secret=s3cret#part`)
    const { message } = await failureOf(ready)
    expect(message).toBe(`the key set at ${server.url} could not be fetched (reason: ${reason})`)
  })

  it('says at a 404 where a core and the backend SDK publish a key set', async () => {
    const server = await openKeySetServer(respond('404 Not Found', ''))
    const { message } = await failureOf(open(server.url).ready)
    expect(message).toContain('(reason: status 404: a core itself publishes /.well-known/jwks.json')
    expect(message).toContain('the backend SDK /auth/jwt/jwks.json')
  })

  it('says so when nothing listens at the address', async () => {
    const jwksUri = await refusingUrl()
    const { message } = await failureOf(open(jwksUri).ready)
    const why = 'reason: network, ECONNREFUSED'
    expect(message).toBe(`the key set at ${jwksUri} could not be fetched (${why})`)
  })

  it('says so when the host is unknown', async () => {
    const { message } = await failureOf(open('https://no-such-host.invalid/jwks.json').ready)
    expect(message).toMatch(/ \(reason: network, (?:ENOTFOUND|EAI_AGAIN)\)$/)
  })

  it('says so when the certificate is by an authority that is not trusted', async () => {
    const { key, cert } = await makeCertificate(10)
    const server = createServer({ key, cert }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const { message } = await failureOf(open(`https://127.0.0.1:${port}/jwks.json`).ready)
    expect(message).toMatch(/ \(reason: network, UNABLE_TO_VERIFY_LEAF_SIGNATURE\)$/)
  })

  it('names no code that is not of the form of the system', async () => {
    const fetch = () => Promise.reject(Object.assign(new Error(), { code: 'token=s3cret' }))
    const keySet = remoteKeySet({ jwksUri: 'https://core.example/jwks.json', fetch })
    onTestFinished(() => keySet.close())
    const { message } = await failureOf(keySet.ready)
    expect(message).toMatch(/\(reason: network\)$/)
  })

  it('tries again after it has been rejected', async () => {
    const server = await openKeySetServer(hangUp, hangUp, serve(KEYS))
    const { ready } = open(server.url)
    await failureOf(ready)
    await ready()
  })
})

it('ready() says so when the key set was closed before', async () => {
  const keySet = remoteKeySet({ jwksUri: 'https://core.example/jwks.json' })
  keySet.close()
  const { message } = await failureOf(keySet.ready)
  expect(message).toMatch(/\(reason: closed\)$/)
})
