import { describe, expect, it } from 'vitest'
import { corePhoneNumber } from '../../../src/migration/record-validation/phone-number.js'

/** Calling code, an example number of the numbering plan, and the trunk prefix if the country has one. */
const COUNTRIES: [country: string, code: string, number: string, trunk?: string][] = [
  ['Switzerland', '41', '781234567', '0'],
  ['Germany', '49', '15123456789', '0'],
  ['Austria', '43', '664123456', '0'],
  ['France', '33', '612345678', '0'],
  ['United Kingdom', '44', '7400123456', '0'],
  ['Ireland', '353', '850123456', '0'],
  ['Netherlands', '31', '612345678', '0'],
  ['Belgium', '32', '470123456', '0'],
  ['Luxembourg', '352', '628123456'],
  ['Spain', '34', '612345678'],
  ['Portugal', '351', '912345678'],
  ['Italy', '39', '3123456789'],
  ['Italy, fixed line', '39', '0236618300'],
  ['San Marino', '378', '66661212'],
  ['Greece', '30', '6912345678'],
  ['Sweden', '46', '701234567', '0'],
  ['Norway', '47', '40612345'],
  ['Denmark', '45', '32123456'],
  ['Finland', '358', '412345678', '0'],
  ['Iceland', '354', '6111234'],
  ['Poland', '48', '512345678'],
  ['Czechia', '420', '601123456'],
  ['Slovakia', '421', '912123456', '0'],
  ['Hungary', '36', '201234567', '06'],
  ['Romania', '40', '712034567', '0'],
  ['Bulgaria', '359', '43012345', '0'],
  ['Croatia', '385', '921234567', '0'],
  ['Slovenia', '386', '31234567', '0'],
  ['Serbia', '381', '601234567', '0'],
  ['Estonia', '372', '51234567'],
  ['Latvia', '371', '21234567'],
  ['Lithuania', '370', '61234567', '8'],
  ['Ukraine', '380', '501234567', '0'],
  ['Belarus', '375', '294911911', '80'],
  ['Russia', '7', '9123456789', '8'],
  ['Kazakhstan', '7', '7710009998', '8'],
  ['Turkey', '90', '5012345678', '0'],
  ['Israel', '972', '502345678', '0'],
  ['United Arab Emirates', '971', '501234567', '0'],
  ['Saudi Arabia', '966', '512345678', '0'],
  ['Egypt', '20', '1001234567', '0'],
  ['Morocco', '212', '650123456', '0'],
  ['South Africa', '27', '711234567', '0'],
  ['Nigeria', '234', '8021234567', '0'],
  ['Kenya', '254', '712123456', '0'],
  ['Ghana', '233', '231234567', '0'],
  ['Tanzania', '255', '621234567', '0'],
  ['Ethiopia', '251', '911234567', '0'],
  ['United States', '1', '2015550123', '1'],
  ['Canada', '1', '5062345678', '1'],
  ['Mexico', '52', '5512345678', '1'],
  ['Brazil', '55', '11961234567', '0'],
  ['Argentina', '54', '91123456789', '0'],
  ['Chile', '56', '221234567'],
  ['Colombia', '57', '3211234567'],
  ['Peru', '51', '912345678', '0'],
  ['Venezuela', '58', '4121234567', '0'],
  ['Uruguay', '598', '94231234', '0'],
  ['Ecuador', '593', '991234567', '0'],
  ['India', '91', '8123456789', '0'],
  ['Pakistan', '92', '3012345678', '0'],
  ['Bangladesh', '880', '1812345678', '0'],
  ['Sri Lanka', '94', '712345678', '0'],
  ['China', '86', '13123456789', '0'],
  ['Japan', '81', '9012345678', '0'],
  ['South Korea', '82', '1020000000', '0'],
  ['Taiwan', '886', '912345678', '0'],
  ['Hong Kong', '852', '51234567'],
  ['Singapore', '65', '81234567'],
  ['Malaysia', '60', '123456789', '0'],
  ['Thailand', '66', '812345678', '0'],
  ['Vietnam', '84', '912345678', '0'],
  ['Indonesia', '62', '812345678', '0'],
  ['Philippines', '63', '9051234567', '0'],
  ['Australia', '61', '412345678', '0'],
  ['New Zealand', '64', '211234567', '0'],
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
