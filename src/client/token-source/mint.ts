import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import { type Core, type CoreAnswer, callCore } from '../core/call-core.js'
import { CoreFailure, type CoreFailureCode } from '../core/core-failure.js'
import {
  nextClaims,
  type RequestedClaims,
  type RequestedConfirmation,
  type TokenTerms,
  unexpectedMember,
} from './token-request.js'
import { TokenSourceError, type TokenSourceErrorCode } from './token-source-error.js'

/** The token request of a source, and the core that receives it. */
export interface Minting extends TokenTerms {
  readonly core: Core
  readonly timeoutMs: number
  /** What the tokens are bound to, if to anything. */
  readonly confirmation?: (() => Promise<RequestedConfirmation>) | undefined
}

/** Twice the size of the largest token that receivers accept. */
const MAX_ANSWER_BYTES = 16 * 1024

const CODES: Readonly<Record<CoreFailureCode, TokenSourceErrorCode>> = {
  api_key_unavailable: 'api_key_unavailable',
  timeout: 'core_timeout',
  unreachable: 'core_unreachable',
}

/**
 * Gets a new token from the core, signed by its dynamic key (the operation `POST /recipe/jwt`).
 *
 * @throws TokenSourceError if there is none, or if it differs from the requested one.
 */
export async function mint(minting: Minting, signal: AbortSignal): Promise<string> {
  const claims = nextClaims(minting.claims, await minting.confirmation?.())
  const token = tokenIn(await requestJwt(claims, minting, signal))
  const member = unexpectedMember(token, claims, minting)
  if (member !== undefined) throw new TokenSourceError('token_unexpected', { member })
  return token
}

async function requestJwt(
  claims: RequestedClaims,
  { core, apiDomain, validitySeconds, timeoutMs }: Minting,
  signal: AbortSignal,
): Promise<CoreAnswer> {
  // Every field is explicit: the core's defaults are a static key and a validity of 100 years.
  const body = {
    payload: claims,
    useStaticSigningKey: false,
    algorithm: 'RS256',
    jwksDomain: apiDomain,
    validity: validitySeconds,
  }
  const limits = { timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES, signal }
  const operation = { method: 'POST', path: '/recipe/jwt', headers: { rid: 'jwt' } } as const
  try {
    return await callCore(core, { ...operation, body, ...limits })
  } catch (error) {
    if (!(error instanceof CoreFailure)) throw error
    const { code, systemCode } = error
    throw new TokenSourceError(CODES[code], systemCode === undefined ? {} : { systemCode })
  }
}

function tokenIn(answer: CoreAnswer): string {
  const { status, text } = answer
  if (status !== 200) throw toSourceError(answer)
  const { status: outcome, jwt } = parseMembers(text)
  if (outcome === 'UNSUPPORTED_ALGORITHM_ERROR') throw new TokenSourceError('algorithm_unsupported')
  if (outcome !== 'OK' || typeof jwt !== 'string') throw new TokenSourceError('response_malformed')
  return jwt
}

function toSourceError(answer: CoreAnswer): TokenSourceError {
  const { status } = answer
  const code = codeOfStatus(status)
  // Of other answers, such as that of a proxy, nothing is quoted.
  const isQuoted = code === 'core_rejected' && answer.text !== undefined
  return new TokenSourceError(code, {
    coreStatus: status,
    ...(isQuoted && answer.excerpt !== undefined && { coreText: answer.excerpt }),
  })
}

function codeOfStatus(status: number): TokenSourceErrorCode {
  if (status === 401) return 'api_key_refused'
  if (status === 429) return 'core_busy'
  return status >= 500 ? 'core_failed' : 'core_rejected'
}

function parseMembers(text: string | undefined): Readonly<Record<string, unknown>> {
  const value = text === undefined ? undefined : parseJson(text)
  return isObject(value) ? value : {}
}
