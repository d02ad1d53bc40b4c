import { remoteKeySet, ServiceAuthError, serviceAuth } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Behaviour,
  hang,
  hangUp,
  refusingUrl,
  respond,
  serve,
  startKeySetServer,
} from '../support/key-set-server.js'
import { POLICY, shapeOfKey } from '../support/signing-keys.js'

const KEYS = { keys: [shapeOfKey('a', 2048)] }

async function failureOf(ready: () => Promise<void>): Promise<Error> {
  const failure: unknown = await ready().then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(failure instanceof ServiceAuthError)) throw new Error('no ServiceAuthError')
  expect(failure).toMatchObject({ name: 'ServiceAuthError', code: 'unavailable' })
  for (const name of ['status', 'statusCode', 'headers']) expect(name in failure).toBe(false)
  return failure
}

describe.each(['serviceAuth', 'remoteKeySet'])('ready() of %s', (by) => {
  const open = (jwksUri: string): { ready(): Promise<void> } => {
    const keySet = remoteKeySet({ jwksUri, timeoutMs: 300 })
    onTestFinished(() => keySet.close())
    return by === 'serviceAuth' ? serviceAuth({ ...POLICY, keySet }) : keySet
  }

  it.each<[string, Behaviour]>([
    ['network', hangUp],
    ['timeout', hang],
    ['status', respond('404 Not Found', '')],
    ['malformed', respond('200 OK', '<html>')],
    ['no_usable_key', serve({ keys: [] })],
  ])('names the address without its query, and the reason %s', async (reason, behaviour) => {
    const server = await startKeySetServer(behaviour)
    onTestFinished(() => server.close())
    const { ready } = open(`${server.url}?secret=s3cret#part`)
    const { message } = await failureOf(ready)
    expect(message).toBe(`the key set at ${server.url} could not be fetched (reason: ${reason})`)
  })

  it('says so when nothing listens at the address', async () => {
    const jwksUri = await refusingUrl()
    const { message } = await failureOf(open(jwksUri).ready)
    expect(message).toBe(`the key set at ${jwksUri} could not be fetched (reason: network)`)
  })

  it('tries again after it has been rejected', async () => {
    const server = await startKeySetServer(hangUp, hangUp, serve(KEYS))
    onTestFinished(() => server.close())
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
