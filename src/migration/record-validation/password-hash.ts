import { trimmed } from './normalise.js'

interface HashForm {
  /** What the core accepts. It checks little more than the beginning. */
  readonly accepted: RegExp
  /** What a password can be checked against. */
  readonly complete: RegExp
}

const FORMS: ReadonlyMap<string, HashForm> = new Map([
  [
    'BCRYPT',
    {
      accepted: /^\$2[abxy]/,
      complete: /^\$2[abxy]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/,
    },
  ],
  [
    'ARGON2',
    {
      accepted: /^\$argon2[id]/,
      complete:
        /^\$argon2(?:id|i|d)(?:\$v=\d+)?\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/,
    },
  ],
  [
    'FIREBASE_SCRYPT',
    // `$m=`, `$r=` and `$s=` may come in any order.
    {
      accepted:
        /^\$f_scrypt\$[^$]*\$[^$]*(?=.*\$m=[+-]?\d{1,9}(?:\$|$))(?=.*\$r=[+-]?\d{1,9}(?:\$|$))(?=.*\$s=[^$])(?:\$[^$]+){3}$/,
      complete:
        /^\$f_scrypt(?:\$[A-Za-z0-9+/]+={0,2}){2}\$(?=.*m=0*[1-9])(?=.*r=0*[1-9])(?=.*s=[A-Za-z0-9+/]+={0,2}(?:\$|$))/,
    },
  ],
])

/** Finds the form by the name of its algorithm, which is trimmed and case-insensitive, as in the core. */
const formOf = (algorithm: string): HashForm | undefined =>
  FORMS.get(trimmed(algorithm).toUpperCase())

export const isHashAlgorithm = (name: string): boolean => formOf(name) !== undefined

/** Returns what is wrong with a hash. The core checks it only if its algorithm is given. */
export function hashFaultOf(
  passwordHash: string,
  algorithm: string | undefined,
): 'hash_unchecked' | 'invalid_hash' | 'hash_incomplete' | undefined {
  if (algorithm === undefined) return 'hash_unchecked'
  const hash = trimmed(passwordHash)
  if (formOf(algorithm)?.accepted.test(hash) === false) return 'invalid_hash'
  return formOf(algorithm)?.complete.test(hash) === false ? 'hash_incomplete' : undefined
}
