import { addressFault } from '../../base/http-address.js'

/**
 * Why an address cannot be that of the core; `undefined` when it can. Does not repeat the address,
 * which may hold a secret.
 */
export function coreAddressFault(baseUrl: string, allowInsecureHttp: boolean): string | undefined {
  const fault = addressFault(baseUrl, allowInsecureHttp)
  if (fault !== undefined) return fault
  // An empty query is one, too: what is appended would become a part of it.
  return /[?#]/.test(baseUrl) ? 'must not hold a query or a fragment' : undefined
}

/** The address of an operation; `path` begins with a slash. The core may stand below a path. */
export const operationUrl = (baseUrl: string, path: string): string =>
  new URL(baseUrl).href.replace(/\/+$/, '') + path
