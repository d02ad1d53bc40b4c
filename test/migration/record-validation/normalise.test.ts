import { describe, expect, it } from 'vitest'
import { corePhoneNumber } from '../../../src/migration/record-validation/normalise.js'

describe('a phone number', () => {
  // As core 10.1.8 stored them.
  it.each([
    ['+41 44 668 18 06 ext. 7', '+41446681806'],
    ['++41446681808', '+41446681808'],
    ['+41 (0) 44 668 18 09', '+41446681809'],
    ['tel:+41446681810', '+41446681810'],
    ['+٤١٤٤٦٦٨١٨١٢', '+41446681812'],
    ['＋41446681813', '+41446681813'],
    ['+1-800-FLOWERS', '+18003569377'],
    ['+410446681817', '+41446681817'],
    ['+4901511234567', '+491511234567'],
    ['+5215512345678', '+525512345678'],
    ['+414466818071234', '+414466818071234'],
    ['+784957654321', '+74957654321'],
    ['+116502530000', '+16502530000'],
    ['+54 0 11 15 2345 6789', '+5491123456789'],
  ])('%s is stored as %s', (phoneNumber, stored) => {
    expect(corePhoneNumber(phoneNumber)).toBe(stored)
  })

  it.each(['0041446681800', '+', 'ann', '\u00a0ann', '\ufeffa', `+41${'4'.repeat(250)}`])(
    'that has no country is only trimmed: %j',
    (phoneNumber) => {
      expect(corePhoneNumber(`\u0000 ${phoneNumber}\t`)).toBe(phoneNumber)
    },
  )
})
