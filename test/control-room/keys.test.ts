import { afterAll, beforeAll, expect, it } from 'vitest'
import { type CoreKeys, openCoreKeys } from '../../example-app/control-room/keys/core-keys.js'
import type { CoreKey } from '../../example-app/control-room/protocol.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import type { PublicJwk } from '../../example-app/identity-core/signing-key.js'
import { publicJwk } from '../../src/testing/issuer/issuer-keys.js'
import { fetchKeySet, mintedBy } from '../example-app/core-client.js'
import { decodeToken } from '../example-app/decode-token.js'
import { takeKey } from '../support/issuer/spare-keys.js'

const API_KEY = 'the-key-of-this-test'
const CATALOGUE_KEY = publicJwk(takeKey('d-of-the-catalogue')) as PublicJwk

let core: IdentityCore
let keys: CoreKeys

beforeAll(async () => {
  core = await startIdentityCore({ apiKey: API_KEY })
  core.publishAlso([CATALOGUE_KEY])
  keys = openCoreKeys({ core, catalogueKids: [CATALOGUE_KEY.kid] })
})
afterAll(() => core.close())

const signing = () => keys.state().keys.find((key) => key.kind === 'dynamic' && key.isSigning)
const kidsOf = (found: readonly CoreKey[]) => found.map(({ kid }) => kid)
const failureOf = (promise: Promise<unknown>) => promise.catch((error: Error) => error)

it('shows the keys that the core publishes, with their kind and age', async () => {
  const { keys: shown, url } = keys.state()
  expect(url).toBe(core.url)
  expect(kidsOf(shown)).toEqual((await fetchKeySet(core.url)).kids)
  expect(shown.map(({ kind, isSigning }) => [kind, isSigning])).toEqual([
    ['dynamic', true],
    ['static', true],
    ['catalogue', false],
  ])
  for (const { createdAt } of shown) expect(Math.abs(Date.now() - createdAt)).toBeLessThan(60_000)
})

it('rotates: the new key signs at once', async () => {
  const { kid } = await keys.rotate()
  expect(signing()?.kid).toBe(kid)
  expect(JSON.parse(decodeToken(await mintedBy(core.url)).header).kid).toBe(kid)
})

it('removes a key, and the core makes another when the last is gone', async () => {
  for (const { kid, kind } of keys.state().keys) {
    if (kind === 'dynamic') await keys.remove({ kid })
  }
  expect(signing()).toBeUndefined()
  await mintedBy(core.url)
  expect(signing()).toBeDefined()
})

it('refuses to remove what is not there, or what the catalogue needs', async () => {
  const failures = await Promise.all(
    [{ kid: 'd-0' }, { kid: CATALOGUE_KEY.kid }, {}].map((input) => failureOf(keys.remove(input))),
  )
  expect(failures).toMatchObject(failures.map(() => ({ name: 'ActionError' })))
  expect((await fetchKeySet(core.url)).kids).toContain(CATALOGUE_KEY.kid)
})

it('slows the key set, and nothing else', async () => {
  keys.slow({ milliseconds: 80 })
  expect(keys.state().slowByMs).toBe(80)
  const startedAt = performance.now()
  await fetchKeySet(core.url)
  expect(performance.now() - startedAt).toBeGreaterThan(75)
  keys.slow({ milliseconds: 0 })
  expect(keys.state().slowByMs).toBe(0)
})

it('closes while a slow answer is waited for', async () => {
  const other = await startIdentityCore({ apiKey: API_KEY })
  other.setSlow(60_000)
  const asking = fetchKeySet(other.url).catch(() => 'cut')
  while (other.keySetRequests() === 0) await new Promise(setImmediate)
  await other.close()
  expect(await asking).toBe('cut')
})

it('takes the key set down and up, and counts who asks', async () => {
  const before = keys.state().keySetRequests
  keys.takeDown({ isDown: true })
  expect(keys.state().isDown).toBe(true)
  expect((await fetch(`${core.issuer}/auth/jwt/jwks.json`)).status).toBe(503)
  keys.takeDown({ isDown: false })
  expect((await fetch(`${core.issuer}/auth/jwt/jwks.json`)).status).toBe(200)
  expect(keys.state()).toMatchObject({ isDown: false, keySetRequests: before + 2 })
})

it('publishes no key id twice', () => {
  expect(() => core.publishAlso([CATALOGUE_KEY])).toThrow(/published already/)
})

it('rotates no further than receivers follow', async () => {
  const many = Array.from({ length: 32 }, (_, index): CoreKey => {
    return { kid: `d-${index}`, kind: 'dynamic', createdAt: index, isSigning: index === 0 }
  })
  const full = {
    ...core,
    keys: () =>
      many.map(({ createdAt, ...key }) => ({
        ...key,
        createdMs: createdAt,
        kind: 'dynamic' as const,
      })),
  }
  const crowded = openCoreKeys({ core: full, catalogueKids: [] })
  expect(await failureOf(crowded.rotate())).toMatchObject({ name: 'ActionError' })
})
