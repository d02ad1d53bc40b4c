import type { Random } from './random.js'

type Mutation = (text: string, random: Random, others: readonly string[]) => string

const EDGES = ['0', '-1', '-0', '1e400', '9007199254740993', '1e-7', '2147483648', '4294967296']
const WORDS = [
  'RS256',
  'none',
  'HS256',
  'null',
  '__proto__',
  'constructor',
  '\u0000',
  '"',
  '{',
  '[]',
]
const UNICODE = ['é', 'ø', '\u00a0', '\u0085', 'ÿ', '¼']
const SEPARATORS = ['.', '..', '=', '==', '+', '/', ' ', '\t', ',', ';', '%2e', '~', '\u007f']

const at = (text: string, random: Random): number => random.below(text.length + 1)

const insert =
  (choices: readonly string[]): Mutation =>
  (text, random) => {
    const index = at(text, random)
    return text.slice(0, index) + random.pick(choices) + text.slice(index)
  }

const segments = (change: (parts: string[], random: Random) => string[]): Mutation => {
  return (text, random) => change(text.split('.'), random).join('.')
}

/** Changes of the text of a credential, without a thought for what it means. */
const TEXT_MUTATIONS: readonly Mutation[] = [
  function flipBit(text, random) {
    const index = random.below(text.length || 1)
    const code = text.charCodeAt(index) ^ (1 << random.below(8))
    return text.slice(0, index) + String.fromCharCode(code & 0xff) + text.slice(index + 1)
  },
  function splice(text, random, others) {
    const other = random.pick(others)
    return text.slice(0, at(text, random)) + other.slice(at(other, random))
  },
  function remove(text, random) {
    const start = at(text, random)
    return text.slice(0, start) + text.slice(start + 1 + random.below(8))
  },
  function repeat(text, random) {
    const start = at(text, random)
    const piece = text.slice(start, start + 1 + random.below(64))
    return text.slice(0, start) + piece.repeat(1 + random.below(40)) + text.slice(start)
  },
  insert(SEPARATORS),
  insert(UNICODE),
  segments((parts, random) => [...parts, random.pick(parts)]),
  segments((parts) => parts.reverse()),
  segments((parts, random) => parts.filter((_, index) => index !== random.below(parts.length))),
  segments((parts, random) => [...parts, ...Array<string>(random.below(2000)).fill('')]),
  (text, random) => (random.chance(0.5) ? text.toLowerCase() : text.toUpperCase()),
]

/** Changes of the JSON in one of the first two segments, encoded again. */
const mutateJson: Mutation = (text, random) => {
  const parts = text.split('.')
  const index = random.below(2)
  const json = Buffer.from(parts[index] ?? '', 'base64url').toString('latin1')
  const values = /(?<=:)("[^"]*"|[^,}\]]+)/g
  const found = [...json.matchAll(values)]
  const target = found.length === 0 ? undefined : random.pick(found)
  const word = random.chance(0.5) ? random.pick(EDGES) : JSON.stringify(random.pick(WORDS))
  const start = target?.index ?? 0
  const changed = json.slice(0, start) + word + json.slice(start + (target?.[0].length ?? 0))
  parts[index] = Buffer.from(changed, 'latin1').toString('base64url')
  return parts.join('.')
}

/** One to four changes of a credential; `others` lend what is spliced in. */
export function mutate(text: string, random: Random, others: readonly string[]): string {
  let mutated = text
  for (let count = 1 + random.below(4); count > 0; count -= 1) {
    const mutation = random.chance(0.3) ? mutateJson : random.pick(TEXT_MUTATIONS)
    mutated = mutation(mutated, random, others)
  }
  return mutated
}
