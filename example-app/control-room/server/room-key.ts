import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

const KEY_BYTES = 32

/**
 * What opens a room. It is part of the address rather than a cookie: a browser would send a cookie
 * to every port of this machine.
 */
export const newRoomKey = (): string => randomBytes(KEY_BYTES).toString('base64url')

/** Whether a text is the key, in a time that does not depend on how much of it is right. */
export function keyCheck(key: string): (text: string) => boolean {
  const expected = digestOf(key)
  return (text) => timingSafeEqual(digestOf(text), expected)
}

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
