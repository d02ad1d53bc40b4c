import { describe, expect, it } from 'vitest'
import { isServerFailure } from '../../../../src/stores/postgres/run/live-runs.js'
import {
  type CommitFailure,
  classifyFailure,
} from '../../../../src/stores/postgres/run/resolve-commit.js'

/** SQLSTATE, what it comes to at the record, and what at COMMIT. */
const TABLE: readonly (readonly [string | undefined, CommitFailure, CommitFailure])[] = [
  [undefined, 'unavailable', 'unclear'],
  ['23505', 'duplicate', 'duplicate'],
  ['40001', 'conflict', 'conflict'],
  ['40P01', 'conflict', 'conflict'],
  ['55P03', 'conflict', 'conflict'],
  ['08000', 'unavailable', 'unclear'],
  ['08003', 'unavailable', 'unclear'],
  ['08006', 'unavailable', 'unclear'],
  ['08P01', 'unavailable', 'unclear'],
  ['57014', 'unavailable', 'unclear'],
  ['57P01', 'unavailable', 'unclear'],
  ['57P02', 'unavailable', 'unclear'],
  ['57P03', 'unavailable', 'unclear'],
  ['57P05', 'unavailable', 'unclear'],
  ['58000', 'unavailable', 'unclear'],
  ['58030', 'unavailable', 'unclear'],
  ['XX000', 'unavailable', 'unclear'],
  ['XX001', 'unavailable', 'unclear'],
  ['53000', 'unavailable', 'unavailable'],
  ['53100', 'unavailable', 'unavailable'],
  ['53200', 'unavailable', 'unavailable'],
  ['53300', 'unavailable', 'unavailable'],
  ['25006', 'unavailable', 'unavailable'],
  ['25P02', 'refused', 'refused'],
  ['25P03', 'unavailable', 'unavailable'],
  ['25P04', 'unavailable', 'unavailable'],
  ['23503', 'refused', 'refused'],
  ['23514', 'refused', 'refused'],
  ['23000', 'refused', 'refused'],
  ['42501', 'refused', 'refused'],
  ['42P01', 'refused', 'refused'],
  ['22P02', 'refused', 'refused'],
  ['40002', 'refused', 'refused'],
  ['40003', 'refused', 'refused'],
  ['P0001', 'refused', 'refused'],
  ['55000', 'refused', 'refused'],
  ['0A000', 'refused', 'refused'],
]

describe('A transaction that failed at its end', () => {
  it.each(TABLE)('with %s: %s at the record, %s at COMMIT', (sqlState, atRecord, atCommit) => {
    expect(classifyFailure('record', sqlState)).toBe(atRecord)
    expect(classifyFailure('commit', sqlState)).toBe(atCommit)
  })

  it('a statement of a handler fails because of the server with class 53, 57P01 to 57P05 or 25006', () => {
    const states = ['53000', '53100', '57P01', '57P02', '57P03', '57P04', '57P05', '25006']
    for (const state of states) expect(isServerFailure(state)).toBe(true)
    const others = [
      undefined,
      '57014',
      '57000',
      '25P02',
      '25001',
      '23505',
      '40001',
      '42501',
      '58030',
    ]
    for (const state of others) expect(isServerFailure(state)).toBe(false)
  })

  it('is unclear at COMMIT alone, and with no SQLSTATE or one of the classes 08, 57, 58 and XX', () => {
    const digits = [...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ']
    const classes = digits.flatMap((one) => digits.map((other) => one + other))
    const unclear = classes.filter(
      (errorClass) => classifyFailure('commit', `${errorClass}000`) === 'unclear',
    )
    expect(unclear).toEqual(['08', '57', '58', 'XX'])
    expect(
      classes.some((errorClass) => classifyFailure('record', `${errorClass}000`) === 'unclear'),
    ).toBe(false)
  })
})
