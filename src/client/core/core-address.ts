import { addressFault } from '../../base/http-address.js'

/**
 * Returns why an address cannot be the core's, `undefined` if it can. Does not repeat the address,
 * which may hold a secret.
 */
export function coreAddressFault(baseUrl: string, allowInsecureHttp: boolean): string | undefined {
  const fault = addressFault(baseUrl, allowInsecureHttp)
  if (fault !== undefined) return fault
  // An empty query counts, too: an appended path would become part of it.
  return /[?#]/.test(baseUrl) ? 'must not hold a query or a fragment' : undefined
}

/** Returns the URL of an operation; `path` begins with a slash. The base URL may have a path. */
export const operationUrl = (baseUrl: string, path: string): string =>
  new URL(baseUrl).href.replace(/\/+$/, '') + path
