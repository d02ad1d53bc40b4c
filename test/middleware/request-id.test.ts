import type { Request } from 'express'
import { expect, it } from 'vitest'
import { requestIdOf } from '../../src/middleware/request-id.js'

const idOf = (id: unknown): unknown => requestIdOf({ id } as unknown as Request)

it('the id of a request is the number or the visible text that the app has set', () => {
  for (const id of [0, -1, 1.5, 'a', 'req-1_!~', 'x'.repeat(128)]) expect(idOf(id)).toBe(id)
})

it('anything else is none', () => {
  const ids = [
    undefined,
    null,
    '',
    ' ',
    'a b',
    'a\n',
    'a\nb',
    'a\u0000',
    'x'.repeat(129),
    'ä',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1n,
    true,
    { toString: () => 'x' },
    ['a'],
  ]
  for (const id of ids) expect(idOf(id)).toBeUndefined()
  expect(requestIdOf({} as Request)).toBeUndefined()
})
