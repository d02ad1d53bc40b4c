import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const GOOD = [
  issuer.token(),
  issuer.token({ sub: 'billing', jti: undefined }),
  issuer.token({ permissions: [], nested: { a: [1, { b: null }] } }),
  issuer.token({ text: 'é\u0000\ud800' }, { typ: undefined }),
]

/** What may stand in the value of a header: visible ASCII, blanks, tabs and Latin-1. */
const headerCharacter = fc
  .integer({ min: 0x09, max: 0xff })
  .filter((code) => code === 0x09 || (code >= 0x20 && code !== 0x7f))
  .map((code) => String.fromCharCode(code))
const headerText = fc.string({ unit: headerCharacter, maxLength: 40 })
const place = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const at = (token: string, share: number): number => Math.floor(share * token.length)

type Mutation = (token: string) => string

const flipBits = fc
  .tuple(fc.nat({ max: 2 }), place, fc.integer({ min: 0, max: 7 }))
  .map(([which, share, bit]): Mutation => {
    return (token) => {
      const segments = token.split('.')
      const bytes = Buffer.from(segments[which] ?? '', 'base64url')
      if (bytes.length === 0) return token
      const index = Math.floor(share * bytes.length)
      bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << bit), index)
      segments[which] = bytes.toString('base64url')
      return segments.join('.')
    }
  })
const replaceCharacter = fc.tuple(place, headerCharacter).map(([share, character]): Mutation => {
  return (token) => {
    const index = at(token, share)
    return token.slice(0, index) + character + token.slice(index + 1)
  }
})
const insert = fc.tuple(place, headerText).map(([share, text]): Mutation => {
  return (token) => token.slice(0, at(token, share)) + text + token.slice(at(token, share))
})
const cut = fc.tuple(place, place).map(([from, to]): Mutation => {
  return (token) => token.slice(0, at(token, from)) + token.slice(at(token, to))
})
const splice = fc.tuple(fc.constantFrom(...GOOD), place, place).map(([other, here, there]) => {
  const mutation: Mutation = (token) =>
    token.slice(0, at(token, here)) + other.slice(at(other, there))
  return mutation
})
const reorder = fc
  .array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 6 })
  .map((order): Mutation => {
    return (token) => order.map((index) => token.split('.')[index] ?? '').join('.')
  })
const exchange = fc.tuple(fc.nat({ max: 2 }), fc.constantFrom(...GOOD)).map(([which, other]) => {
  const mutation: Mutation = (token) => {
    const segments = token.split('.')
    segments[which] = other.split('.')[which] ?? ''
    return segments.join('.')
  }
  return mutation
})
const pad = fc
  .tuple(fc.nat({ max: 2 }), fc.constantFrom('=', '==', '===', '%3D', 'A', '\t', ' x'))
  .map(([which, padding]): Mutation => {
    return (token) =>
      token
        .split('.')
        .map((segment, index) => (index === which ? segment + padding : segment))
        .join('.')
  })
const changeCase = fc.constantFrom<Mutation>(
  (token) => token.toLowerCase(),
  (token) => token.toUpperCase(),
  (token) => token.replaceAll('-', '+').replaceAll('_', '/'),
  (token) => [...token].reverse().join(''),
)
const editJson = fc
  .tuple(fc.nat({ max: 1 }), fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue()))
  .map(([which, members]): Mutation => {
    return (token) => {
      const segments = token.split('.')
      try {
        const text = Buffer.from(segments[which] ?? '', 'base64url').toString()
        const changed = JSON.stringify({ ...JSON.parse(text), ...members })
        segments[which] = Buffer.from(changed).toString('base64url')
      } catch {
        return token
      }
      return segments.join('.')
    }
  })

const mutations = fc.array(
  fc.oneof(
    flipBits,
    replaceCharacter,
    insert,
    cut,
    splice,
    reorder,
    exchange,
    pad,
    changeCase,
    editJson,
  ),
  { minLength: 1, maxLength: 4 },
)

/** Node takes blanks and tabs off both ends of a header's value: what differs there is the same. */
const trimmed = (token: string): string => token.replace(/^[\t ]+|[\t ]+$/g, '')

describe.each(EXPRESS_MAJORS)('mutations of good tokens, on $major', ({ express }) => {
  it('never pass, and all get the same bytes', { timeout: 60_000 }, async () => {
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy())),
    })
    for (const token of GOOD) expect((await receiver.call(token)).status).toBe(200)
    const handled = receiver.handled
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...GOOD), mutations, async (good, steps) => {
        const mutant = steps.reduce((token, mutate) => mutate(token), good)
        fc.pre(!GOOD.includes(trimmed(mutant)) && mutant.length < 12_000)
        expect(await receiver.rawWith(`Bearer ${mutant}`)).toBe(INVALID_TOKEN)
      }),
      { numRuns: 400 },
    )
    expect(receiver.handled).toBe(handled)
    expect(receiver.errors).toEqual([])
    for (const token of GOOD) expect((await receiver.call(token)).status).toBe(200)
  })
})
