import { describe, expect, it } from 'vitest'
import { corePhoneNumber } from '../../../src/migration/record-validation/phone-number.js'

/**
 * Of each kind of numbering plan a few: with a trunk prefix, without one, and with a calling code that
 * several share. Calling code, an example number, and the trunk prefix if the country has one.
 */
const COUNTRIES: [country: string, code: string, number: string, trunk?: string][] = [
  ['Switzerland', '41', '781234567', '0'],
  ['Germany', '49', '15123456789', '0'],
  ['United Kingdom', '44', '7400123456', '0'],
  ['Luxembourg', '352', '628123456'],
  ['Spain', '34', '612345678'],
  ['Italy', '39', '3123456789'],
  ['Italy, fixed line', '39', '0236618300'],
  ['San Marino', '378', '66661212'],
  ['Hungary', '36', '201234567', '06'],
  ['Lithuania', '370', '61234567', '8'],
  ['Belarus', '375', '294911911', '80'],
  ['Russia', '7', '9123456789', '8'],
  ['Kazakhstan', '7', '7710009998', '8'],
  ['United States', '1', '2015550123', '1'],
  ['Canada', '1', '5062345678', '1'],
  ['Mexico', '52', '5512345678', '1'],
  ['Brazil', '55', '11961234567', '0'],
  ['Argentina', '54', '91123456789', '0'],
]

function spellingsOf(code: string, number: string, trunk: string | undefined): string[] {
  const groups = number.replace(/\d{2,3}(?=\d{2,})/g, '$& ')
  return [
    `+${code}${number}`,
    ` +${code} ${groups}\n`,
    `+${code}-${groups.replaceAll(' ', '-')}`,
    `+${code} (${number.slice(0, 2)}) ${number.slice(2)}`,
    `+${code}.${groups.replaceAll(' ', '.')}`,
    `＋${code}${number}`,
    `tel:+${code}${number}`,
    `+${code}${number};ext=3`,
    `+${code} ${groups} ext. 7`,
    ...(trunk === undefined
      ? []
      : [
          `+${code}${trunk}${number}`,
          `+${code} (${trunk}) ${groups}`,
          `+${code} ${trunk}${groups}`,
        ]),
  ]
}

describe('a phone number', () => {
  it.each(COUNTRIES)('of %s is one however it is written', (_country, code, number, trunk) => {
    for (const spelling of spellingsOf(code, number, trunk)) {
      expect(corePhoneNumber(spelling), spelling).toBe(`+${code}${number}`)
    }
  })

  // As core 10.1.8 stored them.
  it.each([
    ['+41 44 668 18 06 ext. 7', '+41446681806'],
    ['++41446681808', '+41446681808'],
    ['+41 (0) 44 668 18 09', '+41446681809'],
    ['tel:+41446681810', '+41446681810'],
    ['+41446681811;ext=3', '+41446681811'],
    ['+٤١٤٤٦٦٨١٨١٢', '+41446681812'],
    ['＋41446681813', '+41446681813'],
    ['+1-800-FLOWERS', '+18003569377'],
    ['+410446681817', '+41446681817'],
    ['+4901511234567', '+491511234567'],
    ['+4402070313000', '+442070313000'],
    ['+5215512345678', '+525512345678'],
    ['+390236618300', '+390236618300'],
    ['+414466818071234', '+414466818071234'],
    ['+784957654321', '+74957654321'],
    ['+116502530000', '+16502530000'],
    ['+54 0 11 15 2345 6789', '+5491123456789'],
  ])('%s is stored as %s', (phoneNumber, stored) => {
    expect(corePhoneNumber(phoneNumber)).toBe(stored)
  })

  it.each([
    '0041446681800',
    '044 668 18 00',
    '+',
    '+0',
    'ann',
    '\u00a0ann',
    '\ufeffa',
    `+41${'4'.repeat(250)}`,
  ])('that has no country is only trimmed: %j', (phoneNumber) => {
    expect(corePhoneNumber(`\u0000 ${phoneNumber}\t`)).toBe(phoneNumber)
  })
})
