import {
  type CoreTokenSource,
  type TokenSourceOptions,
  tokenSource,
} from 'express-service-auth/client'
import { onTestFinished } from 'vitest'
import { knowToken } from '../support/secret-search/index.js'
import { API_DOMAIN, API_KEY, CLAIMS } from './claims.js'

/** Vitest's own is for tests that run alone; a concurrent one gets its own. */
export type WhenFinished = (clean: () => void | Promise<void>) => void

export type Members = Record<string, unknown>

/** Far more than a busy machine takes. */
const TIMEOUT_MS = 20_000

/** A source that is closed after the test. */
export function sourceAt(
  baseUrl: string,
  { apiKey = API_KEY, ...more }: Partial<TokenSourceOptions & TokenSourceOptions['core']> = {},
  whenFinished: WhenFinished = onTestFinished,
): CoreTokenSource {
  const source = tokenSource({
    core: { baseUrl, apiKey },
    apiDomain: API_DOMAIN,
    claims: CLAIMS,
    timeoutMs: TIMEOUT_MS,
    ...more,
  })
  whenFinished(() => source.close())
  return source
}

/** The source's token, which the search for secrets then knows. */
export async function tokenOf(source: CoreTokenSource, after?: string): Promise<string> {
  const token = await source.token(after === undefined ? {} : { after })
  knowToken(token)
  return token
}

/** A token with these members, and a signature that nobody verifies. */
export function compact(header: Members, payload: Members): string {
  const encode = (value: Members): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${encode(header)}.${encode(payload)}.${Buffer.alloc(256, 7).toString('base64url')}`
}

/** The error of the code with which a source rejects. */
export const failure = (code: string): object => ({ name: 'TokenSourceError', code })
