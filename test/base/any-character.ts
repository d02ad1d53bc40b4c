import fc from 'fast-check'

/** Of all of Unicode, lone surrogates too. To make fast-check's own `binary` takes a second. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .integer({ min: 0, max: 0x10ffff })
  .map((code) => String.fromCodePoint(code))
