import { describe, expect, it } from 'vitest'
import { sqlStateOf } from '../../../src/stores/postgres/sql-state.js'

const withCode = (code: unknown): Error => Object.assign(new Error('failed'), { code })

/** Wrapped so many times. */
const nested = (depth: number, error: unknown): unknown =>
  depth === 0 ? error : nested(depth - 1, new Error('wrapped', { cause: error }))

describe('sqlStateOf', () => {
  it.each(['00000', '0A000', '23505', '57P01', 'HV00N', 'P0001', 'XX000'])('knows %s', (code) => {
    expect(sqlStateOf(withCode(code))).toBe(code)
  })

  it.each([
    'EPIPE',
    'ENODE',
    'P2002',
    '23505\n',
    '2350',
    '23p01',
    '60000',
    '９３５０５',
    23505,
    null,
  ])('does not take %j for one', (code) => {
    expect(sqlStateOf(withCode(code))).toBeUndefined()
  })

  it('looks below wrappers, and takes the outermost', () => {
    expect(sqlStateOf(nested(10, withCode('40001')))).toBe('40001')
    expect(sqlStateOf(Object.assign(withCode('23505'), { cause: withCode('40001') }))).toBe('23505')
    expect(sqlStateOf(Object.assign(withCode('P2010'), { cause: withCode('40001') }))).toBe('40001')
    // An error of a model of Prisma.
    const driverAdapterError = { cause: { originalCode: '23505' } }
    const ofModel = Object.assign(withCode('P2002'), { meta: { driverAdapterError } })
    expect(sqlStateOf(ofModel)).toBe('23505')
    expect(sqlStateOf(new AggregateError([new Error('no'), nested(2, withCode('53300'))]))).toBe(
      '53300',
    )
  })

  it('ends where there is no end', () => {
    const circle = withCode('EPIPE')
    circle.cause = circle
    expect(sqlStateOf(circle)).toBeUndefined()
    const endless: object = new Proxy({}, { get: () => new Proxy(endless, {}) })
    expect(sqlStateOf(endless)).toBeUndefined()
    expect(sqlStateOf(nested(1000, withCode('40001')))).toBeUndefined()
    const wide = new AggregateError(Array.from({ length: 1_000_000 }, () => ({})))
    expect(sqlStateOf(wide)).toBeUndefined()
  })
})
