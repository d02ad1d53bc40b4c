import fc from 'fast-check'

type Mutation = (token: string, others: readonly string[]) => string

/** A place in a token, whatever its length is. */
const place = fc.double({ min: 0, max: 1, noNaN: true })
const at = (token: string, share: number): number => Math.floor(share * token.length)

const SEPARATORS = ['.', '..', '=', '==', '===', '%3D', '+', '/', ' ', '\t', ',', ';', '%2e', '~']
const UNICODE = ['é', 'ø', '\u00a0', '\u0085', 'ÿ', '¼']
const EDGES = ['0', '-1', '-0', '1e400', '9007199254740993', '1e-7', '2147483648', '4294967296']
const WORDS = ['RS256', 'none', 'HS256', 'null', '__proto__', 'constructor', '\u0000', '"', '{']

const text = fc.oneof(
  fc.constantFrom(...SEPARATORS, ...UNICODE),
  fc.string({ unit: fc.integer({ min: 0, max: 0xff }).map((code) => String.fromCharCode(code)) }),
)

/** Puts a text in place of a piece, which is repeated instead where it ends before it begins. */
const replacePiece = fc.tuple(place, place, text).map(([from, to, added]): Mutation => {
  return (token) => token.slice(0, at(token, from)) + added + token.slice(at(token, to))
})
const insert = fc.tuple(place, text).map(([where, added]): Mutation => {
  return (token) => token.slice(0, at(token, where)) + added + token.slice(at(token, where))
})
const repeat = fc
  .tuple(place, fc.integer({ min: 1, max: 64 }), fc.integer({ min: 2, max: 40 }))
  .map(([where, length, times]): Mutation => {
    return (token) => {
      const start = at(token, where)
      const piece = token.slice(start, start + length)
      return token.slice(0, start) + piece.repeat(times) + token.slice(start)
    }
  })
const splice = fc.tuple(fc.nat(), place, place).map(([index, here, there]): Mutation => {
  return (token, others) => {
    const other = others[index % others.length] ?? ''
    return token.slice(0, at(token, here)) + other.slice(at(other, there))
  }
})
const respell = fc.constantFrom<Mutation>(
  (token) => token.toLowerCase(),
  (token) => token.toUpperCase(),
  (token) => token.replaceAll('-', '+').replaceAll('_', '/'),
  (token) => [...token].reverse().join(''),
)

const inSegments =
  (change: (segments: string[], others: readonly string[]) => string[]): Mutation =>
  (token, others) =>
    change(token.split('.'), others).join('.')

const reorder = fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 6 }).map((order) => {
  return inSegments((segments) => order.map((index) => segments[index] ?? ''))
})
const addEmpty = fc
  .nat({ max: 2000 })
  .map((count) => inSegments((segments) => [...segments, ...Array<string>(count).fill('')]))

/** Changes one of the three segments. */
const inSegment = (change: fc.Arbitrary<(segment: string) => string>): fc.Arbitrary<Mutation> =>
  fc.tuple(fc.nat({ max: 2 }), change).map(([which, of]) => {
    return inSegments((segments) => segments.map((each, at) => (at === which ? of(each) : each)))
  })

const exchange = fc.tuple(fc.nat({ max: 2 }), fc.nat()).map(([which, index]) =>
  inSegments((segments, others) => {
    const other = others[index % others.length]?.split('.')[which] ?? ''
    return segments.map((each, at) => (at === which ? other : each))
  }),
)
const pad = inSegment(text.map((padding) => (segment) => segment + padding))
const flipBit = inSegment(
  fc.tuple(place, fc.nat({ max: 7 })).map(([where, bit]) => (segment) => {
    const bytes = Buffer.from(segment, 'base64url')
    const index = Math.min(at(segment, where), bytes.length - 1)
    if (index >= 0) bytes.writeUInt8(bytes.readUInt8(index) ^ (1 << bit), index)
    return bytes.toString('base64url')
  }),
)

/** Changes the JSON in a segment, encoded again. */
const inJson = (change: fc.Arbitrary<(json: string) => string>): fc.Arbitrary<Mutation> =>
  inSegment(
    change.map((of) => (segment) => {
      const json = Buffer.from(segment, 'base64url').toString('latin1')
      return Buffer.from(of(json), 'latin1').toString('base64url')
    }),
  )

const value = fc.constantFrom(...EDGES, ...WORDS)
const replaceValue = inJson(
  fc
    .tuple(
      fc.nat(),
      fc.oneof(
        value,
        value.map((word) => JSON.stringify(word)),
      ),
    )
    .map(([index, word]) => (json) => {
      const found = [...json.matchAll(/(?<=:)("[^"]*"|[^,}\]]+)/g)]
      const { index: start = 0, 0: old = '' } = found[index % found.length] ?? {}
      return json.slice(0, start) + word + json.slice(start + old.length)
    }),
)
const addMembers = inJson(
  fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue()).map((members) => (json) => {
    try {
      return JSON.stringify({ ...JSON.parse(json), ...members })
    } catch {
      return json
    }
  }),
)

const mutations = fc.array(
  fc.oneof(
    ...[replacePiece, insert, repeat, splice, respell, reorder, addEmpty],
    ...[exchange, pad, flipBit, replaceValue, addMembers],
  ),
  { minLength: 1, maxLength: 4 },
)

/** Tokens of a corpus with one to four changes each, made without a thought for what they mean. */
export const mutantsOf = (corpus: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(...corpus), mutations)
    .map(([token, steps]) => steps.reduce((changed, mutate) => mutate(changed, corpus), token))
