import { z } from 'zod'
import { addressFault } from '../../base/http-address.js'
import { type ApiKey, isApiKey } from './api-key.js'

export const apiKeyOption = (): z.ZodCustom<ApiKey, ApiKey> =>
  z.custom<ApiKey>((value) => isApiKey(value) || typeof value === 'function', {
    error: 'must be 1 to 1024 visible ASCII characters, or a function that gives them',
  })

/** Returns the problems of an address that is a string; the schema reports any other value. */
export function baseUrlFaults(
  path: string,
  { baseUrl, allowInsecureHttp }: Readonly<Record<'baseUrl' | 'allowInsecureHttp', unknown>>,
): string[] {
  if (typeof baseUrl !== 'string' || baseUrl === '') return []
  const fault = coreAddressFault(baseUrl, allowInsecureHttp === true)
  return fault === undefined ? [] : [`${path} ${fault}`]
}

/**
 * Returns why an address cannot be the core's, `undefined` if it can. Does not repeat the address,
 * which may hold a secret.
 */
function coreAddressFault(baseUrl: string, allowInsecureHttp: boolean): string | undefined {
  const fault = addressFault(baseUrl, allowInsecureHttp)
  if (fault !== undefined) return fault
  // An empty query counts, too: an appended path would become part of it.
  return /[?#]/.test(baseUrl) ? 'must not hold a query or a fragment' : undefined
}

/** Returns the URL of an operation; `path` begins with a slash. The base URL may have a path. */
export const operationUrl = (baseUrl: string, path: string): string =>
  new URL(baseUrl).href.replace(/\/+$/, '') + path
