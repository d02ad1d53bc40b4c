import { randomBytes, randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import { LEAK_LENGTH } from './readings.js'
import { createSecretSearch } from './secret-search.js'

const KEY = randomBytes(32)
/** As long as a token, but not of its form, which the search recognises. */
const TOKEN = randomBytes(400).toString('base64url')
const PUNCTUATED = `"(${randomUUID()}+~$/?\\)"`

/** Returns the findings for a known secret and an output. */
function found(secret: string | Uint8Array, ...written: string[]): readonly string[] {
  const search = createSecretSearch()
  search.know('a token', randomUUID())
  search.know('an idempotency key', secret)
  for (const text of written) search.record('the log', text)
  return search.settle()
}

const FORMS: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex in capitals': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  percent: encodeURIComponent,
  'percent throughout': (text) => Buffer.from(text).toString('hex').replace(/../g, '%$&'),
  'JSON in base64': (text) => Buffer.from(JSON.stringify({ text })).toString('base64'),
  'base64 in percent': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  JSON: JSON.stringify,
  'bytes as inspect shows them': (text) => inspect(Buffer.from(text)),
  'bytes as JSON shows them': (text) => JSON.stringify(Buffer.from(text)),
}

it.each(Object.entries(FORMS))('a secret %s is found whole, and by 16 characters', (_, encode) => {
  for (const secret of [TOKEN, randomUUID(), PUNCTUATED]) {
    expect(found(secret, `before ${encode(secret)} after`), secret).not.toEqual([])
  }
  for (let at = 0; at < 12; at++) {
    const part = TOKEN.slice(at, at + LEAK_LENGTH)
    expect(found(TOKEN, `before.${encode(part)}.after`), `from ${at}`).not.toEqual([])
    // Other text that is encoded with it shifts its characters.
    for (const before of ['', '.', '..', '...']) {
      expect(found(TOKEN, encode(`${before}${part}!`)), `from ${at}`).not.toEqual([])
    }
  }
})

it.each<[string, (key: Buffer) => string]>([
  ['bytes', (key) => key.toString('latin1')],
  ['base64', (key) => key.toString('base64')],
  ['base64url', (key) => `k1:${key.toString('base64url')}`],
  ['hex', (key) => key.toString('hex')],
  ['16 bytes of them in hex', (key) => key.subarray(5, 21).toString('hex')],
  ['JSON', (key) => JSON.stringify({ key })],
])('a key of bytes is found as %s', (_, write) => {
  expect(found(KEY, write(KEY))).not.toEqual([])
})

it('finds a short secret whole, and none that is shorter, uniform or only half there', () => {
  expect(found('pa55-w0rd', 'as pa55-w0rd!')).toEqual([
    'the log (as it is) holds an idempotency key or a part of it',
  ])
  expect(found('pa55-w0rd', 'as pa55-w0')).toEqual([])
  expect(found('secret', 'a secret')).toEqual([])
  expect(found('a'.repeat(32), 'a'.repeat(32))).toEqual([])
  expect(found(TOKEN, TOKEN.slice(0, LEAK_LENGTH - 1))).toEqual([])
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

it('finds secrets in floods of output and of secrets, which it searches part by part', () => {
  const search = createSecretSearch()
  search.know('a token', TOKEN)
  const line = (index: number): string => `${index} `.repeat(2000)
  for (let index = 0; index < 100; index++) search.record('the log', line(index))
  search.record('the log', TOKEN)
  for (let index = 0; index < 100; index++) search.record('the log', line(-index))
  for (let index = 0; index < 40; index++) search.know('a token', randomBytes(75_000))
  expect(search.settle()).toHaveLength(1)
})

it('knows a token that nobody has told it of by its form', () => {
  const header = Buffer.from('{"alg":"RS256","kid":"d-1"}').toString('base64url')
  expect(found(randomUUID(), `token: ${header}.${TOKEN}`)).toEqual([
    'the log (as it is) holds text in the form of a token',
  ])
})
