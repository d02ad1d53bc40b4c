import { timingSafeEqual } from 'node:crypto'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { hash } from '../../base/supported-node.js'

/** The tokens of an issuer: a list, or a function that is called on each request. */
export type TokenList = readonly string[] | (() => readonly string[] | Promise<readonly string[]>)

/** Returns the digests of the currently valid tokens. */
export type TokenDigests = () => Promise<readonly Buffer[]>

/** At least 32 characters; otherwise limited to values that the `Authorization` header can contain. */
const TOKEN = /^[\x21-\x7e]{32,8192}$/

export const isToken = (value: unknown): value is string =>
  typeof value === 'string' && TOKEN.test(value)

const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer')

/** Stores only the digests of a list. */
export function tokenDigests(tokens: TokenList): TokenDigests {
  if (typeof tokens !== 'function') {
    const digests = Promise.resolve(tokens.map(digestOf))
    return () => digests
  }
  return async () => {
    const given: unknown = await tokens()
    if (!Array.isArray(given) || !given.every(isToken)) {
      throw new TypeError('tokens must return a list of 32 or more visible ASCII characters each')
    }
    return given.map(digestOf)
  }
}

/** An owner of tokens. */
export interface TokenHolder {
  readonly name: string
  readonly tokens: TokenDigests
}

/**
 * Returns the owner of the token. Compares all tokens of all owners, each in constant time.
 *
 * @throws ServiceAuthError if several owners have the token. Rejects with the error of an owner's function.
 */
export async function holderOf<Holder extends TokenHolder>(
  holders: readonly Holder[],
  token: string,
): Promise<Holder | undefined> {
  const presented = digestOf(token)
  const lists = await Promise.all(holders.map(({ tokens }) => tokens()))
  const found = holders.filter((_, index) => isAmong(lists[index] ?? [], presented))
  if (found.length > 1) {
    throw wrongWiring('migrationEndpoint: a token stands for one issuer, and several have this one')
  }
  return found[0]
}

function isAmong(digests: readonly Buffer[], presented: Buffer): boolean {
  let isFound = false
  for (const digest of digests) if (timingSafeEqual(digest, presented)) isFound = true
  return isFound
}
