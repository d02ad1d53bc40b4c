import { randomBytes, randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { LEAK_LENGTH } from './secret-index.js'
import { createSecretSearch, describeFindings } from './secret-search.js'

const KEY = randomBytes(32)
/** As long as a token, but not in its form. */
const TOKEN = randomBytes(400).toString('base64url')
const PUNCTUATED = `"(${randomUUID()}+~$/?\\)"`

/** What is found when the secret has gone in and the text has come out. */
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

describe('no secret is', () => {
  it('fewer characters of a longer one', () => {
    for (let at = 0; at < 40; at++) {
      expect(found(TOKEN, `«${TOKEN.slice(at, at + LEAK_LENGTH - 1)}»`)).toEqual([])
    }
  })

  it('a part of a short one, which is found whole', () => {
    expect(found('0a1b2c3d4e', 'a 0a1b2c3d4')).toEqual([])
    expect(found('0a1b2c3d4e', 'a 0a1b2c3d4e5f')).toEqual([
      'the log: an idempotency key (as it is)',
    ])
  })

  it('a text so short or so even that it is found by chance', () => {
    expect(found('billing', 'billing')).toEqual([])
    expect(found('a'.repeat(255), 'a'.repeat(300))).toEqual([])
  })

  it('what other texts look like', () => {
    const written = Array.from({ length: 2000 }, () => [
      randomUUID(),
      randomBytes(64).toString('hex'),
    ])
    expect(found(TOKEN, written.join(' '))).toEqual([])
  })
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

it('does not join two texts that were written each as a whole', () => {
  const search = createSecretSearch()
  search.know('a token', TOKEN)
  search.record('the log', TOKEN.slice(0, 12))
  search.record('the log', TOKEN.slice(12, 20))
  expect(search.settle()).toEqual([])
})

it('knows a token that nobody has told it of by its form', () => {
  const header = Buffer.from('{"alg":"RS256","kid":"d-1"}').toString('base64url')
  expect(found(randomUUID(), `token: ${header}.${TOKEN}`)).toEqual([
    'the log: text in the form of a token (as it is)',
  ])
})

it('says where, what and when, and nothing of the secret', () => {
  const search = createSecretSearch(() => 'orders > are read')
  search.know('a token', TOKEN)
  search.record('the log', Buffer.from(TOKEN).toString('hex'))
  const text = describeFindings(search.settle())
  expect(text).toBe('the log holds a token or a part of it (hex), while «orders > are read» ran')
})

it('keeps a bounded part of a flood, and searches all of it', () => {
  const search = createSecretSearch()
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const kept = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = kept()
  const leaked = randomBytes(400).toString('base64url')
  search.know('a token', leaked)
  search.record('the log', leaked)
  for (let count = 0; count < 20_000; count++)
    search.know('a token', randomBytes(400).toString('base64url'))
  search.know('an API key', TOKEN)
  for (let count = 0; count < 60; count++) search.record('the log', 'x'.repeat(100_000))
  search.record('stderr', TOKEN)
  expect(search.settle().map(({ sink, kind }) => `${sink}: ${kind}`)).toEqual([
    'the log: a token',
    'stderr: an API key',
  ])
  expect(kept() - before).toBeLessThan(32 * 1024 * 1024)
})
