import { trimmed } from './core-trim.js'
import { hashFormOf } from './password-hash.js'
import { optional, type Reading } from './read-field.js'

const LONGEST_HASH = 256

/** `checkEmail` is what the core does in between. */
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
  if (given.length > LONGEST_HASH) {
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
