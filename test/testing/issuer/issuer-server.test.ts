import { describe, expect, it, onTestFinished } from 'vitest'
import {
  inProcessFetch,
  type Publication,
  startKeySetServer,
} from '../../../src/testing/issuer/issuer-server.js'

const publish = (): Publication => ({
  document: () => ({ keys: [] }),
  maxAgeSeconds: 7,
  isDown: false,
  delayMs: 0,
  fetches: 0,
})

type Reach = (publication: Publication) => Promise<(init?: RequestInit) => Promise<Response>>

const overHttp: Reach = async (publication) => {
  const server = await startKeySetServer(publication)
  onTestFinished(() => server.close())
  return (init) => fetch(`${server.url}/any/jwks.json`, init)
}
const inProcess: Reach = async (publication) => (init) =>
  inProcessFetch(publication)('https://issuer.test/jwks.json', init)

describe.each([
  ['over HTTP', overHttp],
  ['in the process', inProcess],
])('a key set %s', (_name, reach) => {
  it('answers with its document and its life, and counts', async () => {
    const publication = publish()
    const ask = await reach(publication)
    const response = await ask()
    expect(await response.json()).toEqual({ keys: [] })
    expect(response.headers.get('cache-control')).toBe('max-age=7, must-revalidate')
    expect(publication.fetches).toBe(1)
  })

  it('is given up by a client that does not wait', async () => {
    const publication = publish()
    publication.delayMs = 60_000
    const ask = await reach(publication)
    await expect(ask({ signal: AbortSignal.timeout(20) })).rejects.toThrow()
  })
})

it('a server answers nothing but its key set, and can be closed twice in mid-answer', async () => {
  const publication = publish()
  const server = await startKeySetServer(publication)
  expect((await fetch(`${server.url}/`)).status).toBe(404)
  publication.delayMs = 60_000
  const waiting = fetch(`${server.url}/jwks.json`)
  const failed = expect(waiting).rejects.toThrow()
  await Promise.all([server.close(), server.close()])
  await failed
  await expect(fetch(`${server.url}/jwks.json`)).rejects.toThrow()
})
