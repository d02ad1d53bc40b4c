import { randomBytes, randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { LEAK_LENGTH } from './secret-index.js'
import { createSecretSearch } from './secret-search.js'

const KEY = randomBytes(32)
/** As long as a token, but not of its form, which the search recognises. */
const TOKEN = randomBytes(400).toString('base64url')
const PUNCTUATED = `"(${randomUUID()}+~$/?\\)"`

/** Returns the findings for a known secret and an output. */
function found(secret: string | Uint8Array, written: string | Uint8Array): string[] {
  const search = createSecretSearch()
  search.know('a token', randomUUID())
  search.know('an idempotency key', secret)
  search.record('the log', written)
  return search.settle().map(({ sink, kind, form }) => `${sink}: ${kind} (${form})`)
}

const percentOfAll = (text: string): string =>
  Buffer.from(text).toString('hex').replace(/../g, '%$&')

const FORMS: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex in capitals': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  percent: encodeURIComponent,
  'percent throughout': percentOfAll,
  'JSON in base64': (text) => Buffer.from(JSON.stringify({ text })).toString('base64'),
  'base64 in percent': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  JSON: JSON.stringify,
  'bytes as inspect shows them': (text) => inspect(Buffer.from(text)),
  'bytes as JSON shows them': (text) => JSON.stringify(Buffer.from(text)),
}

describe.each(Object.entries(FORMS))('a secret %s', (_, encode) => {
  it.each([
    ['a token', TOKEN],
    ['an idempotency key', randomUUID()],
    ['a text with punctuation', PUNCTUATED],
  ])('is found whole: %s', (_name, secret) => {
    expect(found(secret, `before ${encode(secret)} after`)).not.toEqual([])
  })

  it('is found by any 16 characters in a row, wherever they begin', () => {
    for (let at = 0; at < 12; at++) {
      const part = TOKEN.slice(at, at + LEAK_LENGTH)
      expect(found(TOKEN, `before.${encode(part)}.after`), `from ${at}`).not.toEqual([])
    }
  })

  it('is found by a part that other text surrounds before it is encoded', () => {
    for (let at = 0; at < 9; at++) {
      const part = TOKEN.slice(at, at + LEAK_LENGTH)
      for (const before of ['', '.', '..', '...']) {
        expect(found(TOKEN, encode(`${before}${part}!`)), `from ${at}`).not.toEqual([])
      }
    }
  })
})

it.each<[string, (key: Buffer) => string | Uint8Array]>([
  ['bytes', (key) => key],
  ['base64', (key) => key.toString('base64')],
  ['base64url', (key) => `k1:${key.toString('base64url')}`],
  ['hex', (key) => key.toString('hex')],
  ['16 bytes of them in hex', (key) => key.subarray(5, 21).toString('hex')],
  ['JSON', (key) => JSON.stringify({ key })],
])('a key of bytes is found as %s', (_, write) => {
  expect(found(KEY, write(KEY))).not.toEqual([])
})

it('finds a secret that is told only after it has come out', () => {
  const search = createSecretSearch()
  search.record('the log', TOKEN)
  search.know('a token', TOKEN)
  expect(search.settle()).toHaveLength(1)
})

it('finds a secret that a stream has cut in two', () => {
  const search = createSecretSearch()
  search.know('a token', TOKEN)
  search.recordPiece('stdout', TOKEN.slice(0, 12))
  search.recordPiece('stdout', TOKEN.slice(12, 20))
  expect(search.settle()).toHaveLength(1)
})

it('knows a token that nobody has told it of by its form', () => {
  const header = Buffer.from('{"alg":"RS256","kid":"d-1"}').toString('base64url')
  expect(found(randomUUID(), `token: ${header}.${TOKEN}`)).toEqual([
    'the log: text in the form of a token (as it is)',
  ])
})
