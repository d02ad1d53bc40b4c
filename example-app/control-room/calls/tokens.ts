import {
  type CoreTokenSource,
  type DpopTokenSource,
  type ProofRequest,
  type TokenSourceOptions,
  tokenSource,
} from 'express-service-auth/client'
import { UnavailableError } from '../ports.js'
import type { CallOrder } from '../protocol.js'
import type { SelfSigned } from '../receivers/self-signed.js'

/** Where tokens are minted. */
export interface Mint {
  readonly coreUrl: string
  /** The `iss` of the tokens. */
  readonly issuer: string
  readonly apiKey: string
  /** The certificate of the callers, and a PEM file that has it and its key. */
  readonly certificate: SelfSigned & { readonly path: string }
}

type Claims = Pick<CallOrder, 'caller' | 'audience' | 'permissions'>

/** A source of tokens with these claims. */
export function sourceOf(
  { coreUrl, issuer, apiKey }: Mint,
  { caller, audience, permissions }: Claims,
  options: Pick<TokenSourceOptions, 'singleUse' | 'bind'> = {},
): CoreTokenSource {
  const kind = { source: 'microservice', token_type: 'service-access' }
  return tokenSource({
    core: { baseUrl: coreUrl, apiKey },
    apiDomain: issuer,
    claims: { sub: caller, aud: audience, permissions, ...kind },
    ...options,
  })
}

/** A token, and the proofs of the key that it is bound to. */
export interface Minted {
  readonly token: string
  readonly prove?: (request: ProofRequest) => Promise<string>
}

/**
 * A new token, with a key of its own if it is bound to one.
 * @throws {UnavailableError} when the core does not give one
 */
export async function mintToken(
  mint: Mint,
  { binding, ...claims }: Claims & Pick<CallOrder, 'binding'>,
): Promise<Minted> {
  try {
    if (binding === 'key') {
      const source = sourceOf(mint, claims, { bind: 'dpop' }) as DpopTokenSource
      const token = await source.token()
      return { token, prove: (request) => source.proof({ ...request, token }) }
    }
    const bind = binding === 'certificate' ? { certificate: mint.certificate.cert } : undefined
    return { token: await sourceOf(mint, claims, { singleUse: true, bind }).token() }
  } catch (error) {
    throw new UnavailableError(`The core gives no token: ${(error as Error).message}`)
  }
}
