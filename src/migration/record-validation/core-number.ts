/** Matches a number as text: sign, digits before and after the point, power of ten. */
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/**
 * Returns the integer that the core reads from a number. Like Java, it discards the fraction and keeps the
 * lowest `bits`.
 */
export function coreInteger(value: number, bits: 32 | 64): number {
  const whole = Math.trunc(value)
  if (Number.isSafeInteger(whole) && (bits === 64 || whole === (whole | 0))) return whole
  return Number(BigInt.asIntN(bits, integerOf(String(value))))
}

/** Returns the integer of the decimal text that is sent, which may differ from a large number itself. */
function integerOf(text: string): bigint {
  const [, sign, whole = '', fraction = '', power = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  const places = whole.length + Number(power)
  const integer = BigInt(digits.slice(0, Math.max(0, places)).padEnd(places, '0') || '0')
  return sign === '-' ? -integer : integer
}
