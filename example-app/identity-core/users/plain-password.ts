import { randomBytes, scryptSync, timingSafeEqual } from 'node:crypto'

/** Low, because a job may hash thousands in a test. */
const COST = 1024
const BYTES = 32

/** The hash that is stored of a plain password: of its UTF-8, as a core's. */
export function hashPassword(password: string): string {
  const salt = randomBytes(16)
  return ['', 'scrypt', salt.toString('hex'), digest(password, salt).toString('hex')].join('$')
}

/** Whether somebody can sign in with the password. */
export function isPasswordOf(password: string, hash: string): boolean {
  const [, , salt = '', expected = ''] = hash.split('$')
  return timingSafeEqual(digest(password, Buffer.from(salt, 'hex')), Buffer.from(expected, 'hex'))
}

const digest = (password: string, salt: Buffer): Buffer =>
  scryptSync(password, salt, BYTES, { N: COST })
