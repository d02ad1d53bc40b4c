import { trimmed } from './normalise.js'

/** What the core, and a sign-in, make of a password hash. */
export interface HashForm {
  /** Whether the core accepts the hash. It checks little more than the beginning. */
  readonly isAccepted: (hash: string) => boolean
  /** Whether a password can be checked against the hash. */
  readonly isComplete: (hash: string) => boolean
}

const BCRYPT = /^\$2[abxy]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}$/
const ARGON2 =
  /^\$argon2(?:id|i|d)(?:\$v=\d+)?\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{16,}$/
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

const FORMS: ReadonlyMap<string, HashForm> = new Map([
  ['BCRYPT', formOf(/^\$2[abxy]/, BCRYPT)],
  ['ARGON2', formOf(/^\$argon2[id]/, ARGON2)],
  [
    'FIREBASE_SCRYPT',
    {
      isAccepted: (hash) => firebaseParts(hash) !== undefined,
      isComplete: (hash) => isCompleteFirebase(firebaseParts(hash)),
    },
  ],
])

function formOf(accepted: RegExp, complete: RegExp): HashForm {
  return {
    isAccepted: (hash) => accepted.test(hash),
    isComplete: (hash) => complete.test(hash),
  }
}

/** Finds the form by the name of its algorithm, which is trimmed and case-insensitive, as in the core. */
export const hashFormOf = (algorithm: string): HashForm | undefined =>
  FORMS.get(trimmed(algorithm).toUpperCase())

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
