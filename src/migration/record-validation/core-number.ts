/** A number as text: sign, digits before and after the point, power of ten. */
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/

/**
 * What the core reads where it wants an integer: it cuts off the fraction and keeps the lowest
 * `bits`, as Java does.
 */
export function coreInteger(value: number, bits: 32 | 64): number {
  const whole = Math.trunc(value)
  if (Number.isSafeInteger(whole) && (bits === 64 || whole === (whole | 0))) return whole
  return Number(BigInt.asIntN(bits, integerOf(String(value))))
}

/** Of the decimal text that is sent, which for large numbers is not the number itself. */
function integerOf(text: string): bigint {
  const [, sign, whole = '', fraction = '', power = '0'] = NUMBER.exec(text) ?? []
  const digits = whole + fraction
  const places = whole.length + Number(power)
  const integer = BigInt(digits.slice(0, Math.max(0, places)).padEnd(places, '0') || '0')
  return sign === '-' ? -integer : integer
}
