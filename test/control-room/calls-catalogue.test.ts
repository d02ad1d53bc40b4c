import { expect, it, onTestFinished } from 'vitest'
import { openCatalogue } from '../../example-app/control-room/calls/catalogue.js'
import {
  createRemembered,
  createRememberedByPage,
} from '../../example-app/control-room/calls/remembered.js'
import type { PublicJwk } from '../../example-app/identity-core/signing-key.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'

const START = 1_800_000_000_000
const ISSUER = 'http://127.0.0.1:3568'

it('publishes its keys, and makes its tokens again when they are older than a minute', async () => {
  let now = START
  const published: PublicJwk[] = []
  const catalogue = await openCatalogue({
    core: { issuer: ISSUER, publishAlso: (keys) => published.push(...keys) },
    clock: () => now,
    openIssuer: createTestIssuer,
  })
  onTestFinished(catalogue.close)
  expect(published.map(({ kid }) => kid)).toEqual(catalogue.kids)
  expect(catalogue.kids.map((kid) => kid.slice(0, 2)).toSorted()).toEqual(['d-', 's-'])
  expect(new Set(catalogue.cases.map(({ name }) => name)).size).toBe(catalogue.cases.length)

  const name = 'nbf in an hour'
  const first = catalogue.find(name)
  expect(catalogue.find(name)).toBe(first)
  now += 60_000
  expect(catalogue.find(name)).toBe(first)
  now += 1
  const second = catalogue.find(name)
  expect(second?.authorization).not.toBe(first?.authorization)
  const [, payload = ''] = second?.authorization.split('.') ?? []
  expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({
    iss: ISSUER,
    nbf: now / 1000 + 3600 - (now % 1000) / 1000,
  })
  expect(catalogue.find('of nobody')).toBeUndefined()
})

it('remembers the last token of each of a hundred callers, and the last key', () => {
  let keys = 0
  const remembered = createRemembered(() => {
    keys += 1
    return `key ${keys}`
  })
  const post = (idempotencyKey: 'none' | 'new' | 'same') =>
    remembered.keyFor({ method: 'POST', idempotencyKey })
  expect(() => post('same')).toThrow(/new key first/)
  expect([post('new'), post('same'), post('none'), post('same')]).toEqual([
    'key 1',
    'key 1',
    undefined,
    'key 1',
  ])
  expect(remembered.keyFor({ method: 'GET', idempotencyKey: 'new' })).toBeUndefined()
  for (let caller = 0; caller <= 100; caller += 1)
    remembered.keepToken(`c${caller}`, { token: 'a token' })
  expect(remembered.tokenOf('c100').token).toBe('a token')
  expect(() => remembered.tokenOf('c0')).toThrow(/c0 has sent no token yet/)
})

it('keeps the keys and tokens of pages apart, and forgets the oldest page', () => {
  const of = createRememberedByPage()
  const post = (page: string, idempotencyKey: 'new' | 'same') =>
    of(page).keyFor({ method: 'POST', idempotencyKey })
  const key = post('one', 'new')
  expect(() => post('other', 'same')).toThrow(/new key first/)
  expect(post('other', 'new')).not.toBe(key)
  expect(post('one', 'same')).toBe(key)
  of('one').keepToken('billing', { token: 'a token' })
  expect(() => of('other').tokenOf('billing')).toThrow(/no token yet/)
  for (let page = 0; page < 32; page += 1) of(`page ${page}`)
  expect(() => post('one', 'same')).toThrow(/new key first/)
})
