import { type CoreTokenSource, tokenSource } from 'express-service-auth/client'
import { UnavailableError } from '../ports.js'
import type { CallOrder } from '../protocol.js'

/** Where tokens are minted. */
export interface Mint {
  readonly coreUrl: string
  /** The `iss` of the tokens. */
  readonly issuer: string
  readonly apiKey: string
}

type Claims = Pick<CallOrder, 'caller' | 'audience' | 'permissions'>

/** A source of tokens with these claims: one for each call, or the same for as long as it is good. */
export function sourceOf(
  { coreUrl, issuer, apiKey }: Mint,
  { caller, audience, permissions }: Claims,
  singleUse: boolean,
): CoreTokenSource {
  const kind = { source: 'microservice', token_type: 'service-access' }
  return tokenSource({
    core: { baseUrl: coreUrl, apiKey },
    apiDomain: issuer,
    claims: { sub: caller, aud: audience, permissions, ...kind },
    singleUse,
  })
}

/**
 * A new token.
 * @throws {UnavailableError} when the core does not give one
 */
export async function mintToken(mint: Mint, claims: Claims): Promise<string> {
  const source = sourceOf(mint, claims, true)
  try {
    return await source.token()
  } catch (error) {
    throw new UnavailableError(`The core gives no token: ${(error as Error).message}`)
  } finally {
    source.close()
  }
}
