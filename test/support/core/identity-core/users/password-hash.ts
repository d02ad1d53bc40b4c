import { Refused } from '../reply.js'
import { trim } from './java-text.js'

const PREFIXES = {
  BCRYPT: ['$2a', '$2b', '$2x', '$2y'],
  ARGON2: ['$argon2id', '$argon2i', '$argon2d'],
  FIREBASE_SCRYPT: [],
} as const

export type HashingAlgorithm = keyof typeof PREFIXES

const NAMES = { BCRYPT: 'BCrypt', ARGON2: 'Argon2', FIREBASE_SCRYPT: 'Firebase SCrypt' } as const

export function toAlgorithm(text: string): HashingAlgorithm | undefined {
  const name = trim(text).toUpperCase()
  return Object.hasOwn(PREFIXES, name) ? (name as HashingAlgorithm) : undefined
}

/**
 * Returns the core's objection to a hash, of which it checks only the beginning.
 * @throws {Refused} with an error of the core if it lacks Firebase's signer key
 */
export function hashFault(
  hash: string,
  algorithm: HashingAlgorithm,
  hasFirebaseSignerKey: boolean,
): string | undefined {
  if (algorithm === 'FIREBASE_SCRYPT' && !hasFirebaseSignerKey) {
    const exception = 'java.lang.IllegalStateException'
    throw new Refused(500, `${exception}: 'firebase_password_hashing_signer_key' cannot be null`)
  }
  const isOfForm =
    algorithm === 'FIREBASE_SCRYPT'
      ? firebaseParts(hash) !== undefined
      : PREFIXES[algorithm].some((prefix) => hash.startsWith(prefix))
  return isOfForm ? undefined : `Password hash is in invalid ${NAMES[algorithm]} format`
}

interface FirebaseParts {
  readonly hash: string
  readonly salt: string
  /** The exponent of scrypt's cost. */
  readonly memory: number
  readonly rounds: number
  readonly separator: string
}

/** Parses `$f_scrypt$<hash>$<salt>`, then memory, rounds and salt separator in any order. */
export function firebaseParts(text: string): FirebaseParts | undefined {
  const [empty, name, hash, salt, ...settings] = text.replace(/\$+$/, '').split('$')
  if (empty !== '' || name !== 'f_scrypt' || settings.length !== 3) return undefined
  const [memory, rounds, separator] = [/^m=([+-]?\d+)$/, /^r=([+-]?\d+)$/, /^s=(.+)/].map((form) =>
    settings.map((setting) => form.exec(setting)?.[1]).find(Boolean),
  )
  if (hash === undefined || salt === undefined || separator === undefined) return undefined
  if (memory === undefined || rounds === undefined) return undefined
  return { hash, salt, memory: Number(memory), rounds: Number(rounds), separator }
}
