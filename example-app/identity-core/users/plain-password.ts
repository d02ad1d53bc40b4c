import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'

/** Low, because the job of a test may hash thousands of passwords. */
const COST = 1024
const BYTES = 32

/** Returns the hash of a plain password's UTF-8, like a core. */
export function hashPassword(password: string): string {
  const salt = randomBytes(16)
  return ['', 'scrypt', salt.toString('hex'), digest(password, salt).toString('hex')].join('$')
}

export function isPasswordOf(password: string, hash: string): boolean {
  const [, , salt = '', expected = ''] = hash.split('$')
  return timingSafeEqual(digest(password, Buffer.from(salt, 'hex')), Buffer.from(expected, 'hex'))
}

const digest = (password: string, salt: Buffer): Buffer =>
  scryptSync(password, salt, BYTES, { N: COST })
