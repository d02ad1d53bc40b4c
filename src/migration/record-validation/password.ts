import { optional, type Reading } from './read-field.js'
import { trimmed } from './stored-form.js'

const MAX_HASH_LENGTH = 256

/** Calls `checkEmail` between its own checks, as the core does. */
export function readPassword(reading: Reading, checkEmail: () => void): void {
  const { field, findings } = reading
  const hash = optional(reading, 'passwordHash', 'string')
  const algorithm = optional(reading, 'hashingAlgorithm', 'string')
  const plainText = optional(reading, 'plainTextPassword', 'string')
  if ((hash === undefined || algorithm === undefined) && plainText === undefined) {
    findings.refuse('no_password', field, NO_PASSWORD)
  }
  checkEmail()
  if (algorithm !== undefined) checkHash(hash, algorithm, reading)
  else if (hash !== undefined && plainText !== undefined) {
    findings.warn('hash_unchecked', `${field}.passwordHash`, UNCHECKED)
  }
}

function checkHash(given: string | undefined, algorithm: string, reading: Reading): void {
  const { field, findings } = reading
  const form = hashFormOf(algorithm)
  if (form === undefined) {
    findings.refuse('unknown_algorithm', `${field}.hashingAlgorithm`, UNKNOWN_ALGORITHM)
    return
  }
  if (given === undefined) return
  const place = `${field}.passwordHash`
  if (given.length > MAX_HASH_LENGTH) {
    findings.refuse('too_long', place, 'passwordHash is too long. Max length is 256.')
  }
  const hash = trimmed(given)
  if (!form.isAccepted(hash)) findings.refuse('invalid_hash', place, form.refusal)
  else if (!form.isComplete(hash)) findings.warn('hash_incomplete', place, INCOMPLETE)
}

const NO_PASSWORD =
  'Either (passwordHash, hashingAlgorithm) or plainTextPassword is required for an emailpassword recipe.'
const UNKNOWN_ALGORITHM =
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!'
const UNCHECKED =
  'Without hashingAlgorithm the core does not check the hash, and uses it in place of the password.'
const INCOMPLETE =
  'Begins like a hash of its algorithm and is not a whole one: no password will fit it.'

type HashingAlgorithm = 'BCRYPT' | 'ARGON2' | 'FIREBASE_SCRYPT'

interface HashForm {
  /** Whether the core accepts the hash. Otherwise it refuses it with the text `refusal`. */
  readonly isAccepted: (hash: string) => boolean
  readonly refusal: string
  /** Whether a password can be checked against it. */
  readonly isComplete: (hash: string) => boolean
}

const BCRYPT = /^\$2[abxy]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/
const ARGON2 =
  /^\$argon2(?:id|i|d)(?:\$v=\d+)?\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

const FORMS: Readonly<Record<HashingAlgorithm, HashForm>> = {
  BCRYPT: {
    isAccepted: (hash) => /^\$2[abxy]/.test(hash),
    refusal: 'Password hash is in invalid BCrypt format',
    isComplete: (hash) => BCRYPT.test(hash),
  },
  ARGON2: {
    isAccepted: (hash) => /^\$argon2[id]/.test(hash),
    refusal: 'Password hash is in invalid Argon2 format',
    isComplete: (hash) => ARGON2.test(hash),
  },
  FIREBASE_SCRYPT: {
    isAccepted: (hash) => firebaseParts(hash) !== undefined,
    refusal: 'Password hash is in invalid Firebase SCrypt format',
    isComplete: (hash) => isCompleteFirebase(firebaseParts(hash)),
  },
}

/** Finds the form by its name, which is trimmed and case-insensitive, as in the core. */
function hashFormOf(algorithm: string): HashForm | undefined {
  const name = trimmed(algorithm).toUpperCase()
  return Object.hasOwn(FORMS, name) ? FORMS[name as HashingAlgorithm] : undefined
}

interface FirebaseParts {
  readonly hash: string
  readonly salt: string
  readonly memory: number
  readonly rounds: number
  readonly separator: string
}

/** Parses `$f_scrypt$<hash>$<salt>`, followed by `$m=<n>`, `$r=<n>` and `$s=<separator>` in any order. */
function firebaseParts(text: string): FirebaseParts | undefined {
  const [before, prefix, hash, salt, ...rest] = split(text, '$')
  if (before !== '' || prefix !== 'f_scrypt' || rest.length !== 3) return undefined
  const memory = after(rest, 'm=')
  const rounds = after(rest, 'r=')
  const separator = after(rest, 's=')
  if (hash === undefined || salt === undefined || separator === undefined) return undefined
  if (!isJavaInt(memory) || !isJavaInt(rounds)) return undefined
  return { hash, salt, memory: Number(memory), rounds: Number(rounds), separator }
}

/** Returns the value after the mark, from the first part that begins with it. */
function after(parts: readonly string[], mark: string): string | undefined {
  const part = parts.find((text) => text.startsWith(mark))
  return part === undefined ? undefined : split(part, mark)[1]
}

/** Splits like Java: without empty parts at the end. */
function split(text: string, separator: string): string[] {
  const parts = text.split(separator)
  while (parts.at(-1) === '') parts.pop()
  return parts
}

const isJavaInt = (text: string | undefined): text is string =>
  text !== undefined && /^[+-]?\d+$/.test(text) && Number(text) === (Number(text) | 0)

function isCompleteFirebase(parts: FirebaseParts | undefined): boolean {
  if (parts === undefined) return false
  const { hash, salt, memory, rounds, separator } = parts
  return [hash, salt, separator].every((part) => BASE64.test(part)) && memory > 0 && rounds > 0
}
