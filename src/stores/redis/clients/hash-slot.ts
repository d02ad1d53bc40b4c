const SLOTS = 16_384
/** CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021

/** Returns the cluster slot of a key (Redis cluster specification: key distribution). */
export function slotOf(key: string): number {
  let crc = 0
  for (const byte of Buffer.from(hashedPart(key))) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL
    }
    crc &= 0xffff
  }
  return crc % SLOTS
}

/** Returns the hash tag, between the first `{` and the next `}`; if it is empty or missing, the key. */
function hashedPart(key: string): string {
  const start = key.indexOf('{')
  const end = start === -1 ? -1 : key.indexOf('}', start + 1)
  return end > start + 1 ? key.slice(start + 1, end) : key
}
