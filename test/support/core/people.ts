import { randomUUID } from 'node:crypto'

/** A name that nobody else has. */
const uniqueName = (kind: string): string => `esa-${kind}-${randomUUID().slice(0, 13)}`

/** Of bcrypt's form; no password belongs to it. */
const HASH = '$2a$11$dAiQz0sH3LgyEVHDjBHVfeZbFqOFtPs9MdhpRbHBwFtkVMcEiEnJq'

const JOINED_MS = 1_700_000_000_000

/** Somebody with an e-mail address and a password, whom no core knows. */
export function person<Change extends object>(change?: Change) {
  const name = uniqueName('user')
  const loginMethods = [withPassword(`${name}@example.com`)]
  return { externalUserId: name, loginMethods, ...(change as Change) }
}

export function withPassword(email: string, change: object = {}) {
  const hash = { passwordHash: HASH, hashingAlgorithm: 'bcrypt' }
  const joined = { timeJoinedInMSSinceEpoch: JOINED_MS }
  return { recipeId: 'emailpassword', email, ...hash, ...joined, ...change }
}

export function withPhone(phoneNumber: string, change: object = {}) {
  const joined = { timeJoinedInMSSinceEpoch: JOINED_MS + 2000 }
  return { recipeId: 'passwordless', phoneNumber, ...joined, ...change }
}
