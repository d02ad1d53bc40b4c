import { remoteKeySet, serviceAuth } from 'express-service-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { keySetAddressFaults, readKeySetAddress } from '../../../src/verification/policy/policy.js'
import { serve } from '../../support/receiver/serve.js'

const addressOf = (options: { issuer: string; apiBasePath?: string; jwksUri?: string }): string => {
  const address = readKeySetAddress(options)
  return address.kind === 'own' ? address.jwksUri : ''
}
const faultsOf = (policy: Record<string, unknown>): string =>
  keySetAddressFaults({ issuer: 'https://api.example.com', ...policy }).join('; ')

describe('the address of the key set', () => {
  it('is made of issuer and base path', () => {
    const issuer = 'https://api.example.com'
    expect(addressOf({ issuer })).toBe(`${issuer}/auth/jwt/jwks.json`)
    expect(addressOf({ issuer, apiBasePath: '/api/v1' })).toBe(`${issuer}/api/v1/jwt/jwks.json`)
    expect(addressOf({ issuer, apiBasePath: '/' })).toBe(`${issuer}/jwt/jwks.json`)
    expect(addressOf({ issuer: `${issuer}/tenant` })).toBe(`${issuer}/tenant/auth/jwt/jwks.json`)
  })

  it('is what jwksUri says, beside any issuer', () => {
    const jwksUri = 'https://keys.example.com/x.json'
    expect(addressOf({ issuer: 'core', jwksUri })).toBe(jwksUri)
    expect(faultsOf({ issuer: 'core', jwksUri })).toBe('')
  })

  it('has the rules of its policy, unless the key set is shared', () => {
    const issuer = 'https://api.example.com'
    const jwksUri = `${issuer}/auth/jwt/jwks.json`
    const own = { kind: 'own', jwksUri, allowInsecureHttp: false, staleIfErrorSeconds: undefined }
    expect(readKeySetAddress({ issuer })).toEqual(own)
    const rules = { allowInsecureHttp: true, staleIfErrorSeconds: 60 }
    expect(readKeySetAddress({ issuer, ...rules })).toEqual({ ...own, ...rules })
    const keySet = remoteKeySet({ jwksUri })
    onTestFinished(() => keySet.close())
    expect(readKeySetAddress({ issuer, keySet })).toEqual({ kind: 'shared', keySet })
    expect(faultsOf({ keySet, issuer: 'core' })).toBe('')
    for (const name of ['jwksUri', 'apiBasePath', 'allowInsecureHttp', 'staleIfErrorSeconds']) {
      expect(faultsOf({ keySet, [name]: 0 })).toBe(
        `${name} cannot be combined with keySet, which has its own`,
      )
    }
  })

  it.each(['auth', '/auth/', '//', '/a b', '/a\\b', '/a?b', '/a#b', ''])(
    'has no base path %j',
    (apiBasePath) => {
      expect(faultsOf({ apiBasePath })).toMatch(/^apiBasePath must start with \//)
    },
  )

  it('is not judged where its parts are of a wrong type, which is a fault of its own', () => {
    for (const value of [1, null, '', {}]) {
      expect(keySetAddressFaults({ issuer: value })).toEqual([])
      expect(keySetAddressFaults({ issuer: 'core', jwksUri: value })).toEqual([])
    }
    expect(faultsOf({ apiBasePath: 1 })).toBe('')
    expect(faultsOf({ apiBasePath: '/' })).toBe('')
  })

  it('is where the middleware fetches', async () => {
    const paths: (string | undefined)[] = []
    const { url: issuer, close } = await serve((request, response) => {
      paths.push(request.url)
      response.writeHead(404).end()
    })
    onTestFinished(close)
    const policy = { issuer, audience: 'a', source: 's', tokenType: 't', callers: ['c'] }
    for (const more of [{}, { apiBasePath: '/api' }, { jwksUri: `${issuer}/keys` }]) {
      const auth = serviceAuth({ ...policy, ...more })
      await expect(auth.ready()).rejects.toThrow()
      auth.close()
    }
    expect(new Set(paths)).toEqual(new Set(['/auth/jwt/jwks.json', '/api/jwt/jwks.json', '/keys']))
  })
})

describe('an issuer without jwksUri', () => {
  it.each([
    'https://api.example.com',
    'HTTPS://API.example.com',
    'https://api.example.com:8443/path',
    'https://[2001:db8::1]',
    'http://localhost:3000',
    'http://127.0.0.1',
    'http://[::1]:3000',
  ])('may be %s', (issuer) => {
    expect(faultsOf({ issuer })).toBe('')
  })

  it.each([
    'https://api.example.com/',
    'https://api.example.com?x=1',
    'https://api.example.com#x',
    'https://user:secret@api.example.com',
    'api.example.com',
    '//api.example.com',
    'https://',
    'https:///x',
    'https://api example.com',
    'https:\\\\api.example.com',
    ' https://api.example.com',
    'https://api.example.com\n',
    'http://api.example.com',
  ])('may not be %j', (issuer) => {
    expect(faultsOf({ issuer })).toMatch(/^issuer /)
  })
})

describe('plain http', () => {
  it('is for loopback, unless it is allowed', () => {
    const far = 'http://keys.example.com/jwks.json'
    expect(faultsOf({ jwksUri: far })).toMatch(/^jwksUri /)
    expect(faultsOf({ jwksUri: far, allowInsecureHttp: true })).toBe('')
    expect(faultsOf({ jwksUri: far, allowInsecureHttp: 'true' })).toMatch(/^jwksUri /)
    expect(faultsOf({ issuer: 'http://api.example.com', allowInsecureHttp: true })).toBe('')
    expect(faultsOf({ jwksUri: 'http://localhost:2/jwks.json' })).toBe('')
  })

  it('does not lift the other rules', () => {
    const issuer = 'http://user:secret@api.example.com'
    expect(faultsOf({ issuer, allowInsecureHttp: true })).toMatch(/^issuer /)
    expect(faultsOf({ jwksUri: 'ftp://x', allowInsecureHttp: true })).toMatch(/^jwksUri /)
  })
})
