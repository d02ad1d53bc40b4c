import { hash, timingSafeEqual } from 'node:crypto'
import { wrongWiring } from '../../base/decision/service-auth-error.js'

/** Of an issuer: a list, or a function that is asked with each request. */
export type TokenList = readonly string[] | (() => readonly string[] | Promise<readonly string[]>)

/** Digests of the tokens that are good now. */
export type TokenDigests = () => Promise<readonly Buffer[]>

/** 32 characters or more; at most what `Authorization` may hold, and nothing that it cannot. */
const TOKEN = /^[\x21-\x7e]{32,8192}$/

export const isToken = (value: unknown): value is string =>
  typeof value === 'string' && TOKEN.test(value)

const digestOf = (token: string): Buffer => hash('sha256', token, 'buffer')

/** Of a list the digests alone are kept. */
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

/** What a token may stand for. */
export interface TokenHolder {
  readonly name: string
  readonly tokens: TokenDigests
}

/**
 * The one that the token stands for. All tokens of all holders are compared, each in constant time.
 *
 * @throws ServiceAuthError when it stands for several, and whatever a holder's function throws.
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
