import { afterAll, describe, expect, it } from 'vitest'
import { rawRequest } from '../../network/raw-exchange.js'
import { API_KEY, mintBody } from '../core-client.js'
import { startIdentityCore } from '../identity-core/identity-core.js'

const core = await startIdentityCore({ apiKey: API_KEY })
afterAll(() => core.close())

const portOf = (url: string): number => Number(new URL(url).port)

/** Asks for a token as a program with the published key does; PORT stands for that of the core. */
function mint(host: string, headers: string[] = []): Promise<string> {
  const port = portOf(core.url)
  const body = JSON.stringify(mintBody())
  const own = [`api-key: ${API_KEY}`, 'rid: jwt', `Content-Length: ${body.length}`]
  const lines = [...own, ...headers].map((line) => line.replace('PORT', String(port)))
  const asked = { method: 'POST', path: '/recipe/jwt', body, headers: lines }
  return rawRequest(port, { ...asked, host: host.replace('PORT', String(port)) })
}

function keySetFor(url: string, path: string, host: string, headers: string[]): Promise<string> {
  const port = portOf(url)
  return rawRequest(port, { path, host: host.replace('PORT', String(port)), headers })
}

const FOREIGN: [name: string, host: string, headers: string[]][] = [
  ['a page behind a rebound name', 'rebound.example:PORT', ['Origin: http://rebound.example:PORT']],
  ['a rebound name without Origin', 'rebound.example:PORT', []],
  ['two Hosts', '127.0.0.1:PORT', ['Host: 127.0.0.1:PORT']],
  ["another site's page", '127.0.0.1:PORT', ['Origin: http://evil.example']],
  ['a page without an origin', '127.0.0.1:PORT', ['Origin: null']],
  ['a page of another port', '127.0.0.1:PORT', ['Origin: http://127.0.0.1:1']],
]

describe('the core of the example', () => {
  it.each(FOREIGN)('mints nothing for %s', async (_name, host, headers) => {
    const answer = await mint(host, headers)
    expect(answer).toMatch(/^HTTP\/1.1 403 /)
    expect(answer).not.toContain('eyJ')
    expect(answer).not.toMatch(/access-control/i)
  })

  it.each(FOREIGN)('shows no key set to %s', async (_name, host, headers) => {
    const answers = await Promise.all([
      keySetFor(core.url, '/.well-known/jwks.json', host, headers),
      keySetFor(core.issuer, '/auth/jwt/jwks.json', host, headers),
    ])
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1.1 403 /)
  })

  it('mints for programs of this machine, by either of its names', async () => {
    // A proxy of this machine may have another port.
    for (const host of ['127.0.0.1:PORT', 'localhost:PORT', '127.0.0.1:1', 'localhost']) {
      expect(await mint(host)).toMatch(/^HTTP\/1.1 200 [\s\S]*"status":"OK"/)
      expect(await mint(host, [`Origin: http://${host}`])).toMatch(/^HTTP\/1.1 200 /)
      expect(await keySetFor(core.issuer, '/auth/jwt/jwks.json', host, [])).toContain(' 200 ')
    }
  })
})
