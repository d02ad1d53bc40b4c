import { expect, it } from 'vitest'
import { endingOf } from '../../../src/idempotency/coupled/buffered-answer.js'

const result = Buffer.from('the answer')

const typeOf = (status: number): string => endingOf({ status, result }).type

it('an answer below 400 commits, a 4xx refuses, and 429 and 5xx roll back', () => {
  const statuses = Array.from({ length: 900 }, (_none, index) => 100 + index)
  const of = (type: string): number[] => statuses.filter((status) => typeOf(status) === type)
  const between = (from: number, to: number) => statuses.filter((one) => one >= from && one < to)
  expect(of('commit')).toEqual(between(100, 400))
  expect(of('refuse')).toEqual(between(400, 500).filter((status) => status !== 429))
  expect(of('roll_back')).toEqual([429, ...between(500, 1000)])
})

it('what is kept is the result as it was given, and of what rolls back nothing', () => {
  expect(endingOf({ status: 201, result })).toEqual({ type: 'commit', result })
  expect(endingOf({ status: 422, result })).toEqual({ type: 'refuse', result })
  expect(endingOf({ status: 200, result: undefined })).toEqual({
    type: 'commit',
    result: undefined,
  })
  expect(endingOf({ status: 404, result: undefined })).toEqual({
    type: 'refuse',
    result: undefined,
  })
  expect(endingOf({ status: 500, result })).toEqual({ type: 'roll_back' })
})
