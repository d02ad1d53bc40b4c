import { expect, it } from 'vitest'
import { textsIn } from './texts-in.js'

const SECRET = 'ab12-cd34-ef56-gh78'

const hidden = (error: Error, name: string, value: unknown): Error =>
  Object.defineProperty(error, name, { value, enumerable: false })

it.each<[string, unknown]>([
  ['a text', SECRET],
  ['bytes', Buffer.from(SECRET)],
  ['a view of bytes', new Uint8Array(Buffer.from(SECRET))],
  ['bytes as numbers', { list: [...Buffer.from(SECRET)] }],
  ['a member', { of: { an: [{ object: SECRET }] } }],
  ['the name of a member', { [SECRET]: true }],
  ['a symbol', { value: Symbol(SECRET) }],
  ['a member under a symbol', { [Symbol('hidden')]: SECRET }],
  ['a map', new Map([[{ key: SECRET }, 1]])],
  ['a set', new Set([SECRET])],
  ['a message', new Error(SECRET)],
  ['a stack of another message', Object.assign(new Error('x'), { stack: `Error: ${SECRET}` })],
  ['a cause', new Error('failed', { cause: new TypeError('x', { cause: SECRET }) })],
  ['one of several errors', new AggregateError([new Error('x'), new Error(SECRET)])],
  ['a hidden member of a cause', new Error('x', { cause: hidden(new Error('y'), 'sent', SECRET) })],
  ['the command of ioredis', Object.assign(new Error('x'), { command: { args: [SECRET] } })],
  ['what a class has made of an object', Object.create(null, { a: { value: SECRET } })],
])('reads %s', (_, value) => {
  const texts = textsIn(value).map(({ text }) => text)
  const numbers = [...Buffer.from(SECRET)].join(',')
  expect(texts.some((text) => text.includes(SECRET) || text.includes(numbers))).toBe(true)
})

it('ends with what leads to itself, and calls no accessor', () => {
  const circle: Record<string, unknown> = {
    get thrower() {
      throw new Error('called')
    },
  }
  circle['self'] = circle
  expect(textsIn(circle).map(({ text }) => text)).toEqual(['thrower\nself'])
})

it('says where a text stands, but for names that may be secrets', () => {
  const error = new Error('x', { cause: { command: { args: [SECRET] }, [SECRET]: { a: SECRET } } })
  const paths = textsIn(error)
    .filter(({ text }) => text === SECRET)
    .map(({ path }) => path)
  expect(paths.sort()).toEqual(['cause.*.a', 'cause.command.args[]'])
})
