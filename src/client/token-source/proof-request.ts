import { isObject } from '../../base/options.js'
import type { ProofRequest } from './token-source-interface.js'

interface ParsedProofRequest {
  readonly method: string
  /** The URL without query and fragment, as `fetch` sends it. */
  readonly uri: string
  readonly token: string | undefined
}

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/

/**
 * Checks the argument of `proof`.
 *
 * @throws TypeError that does not repeat the values.
 */
export function parseProofRequest(request: ProofRequest): ParsedProofRequest {
  const { method, url, token } = (isObject(request) ? request : {}) as Partial<ProofRequest>
  if (typeof method !== 'string' || !TOKEN.test(method)) {
    throw new TypeError('proof: method must be the method of the request')
  }
  if (token !== undefined && (typeof token !== 'string' || token === '')) {
    throw new TypeError('proof: token must be a token, as a string')
  }
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('proof: url must be the absolute http(s) URL of the request')
  }
  // Receivers compare proofs by RFC 3986, in which such a path has no normal form.
  if (/%(?![\dA-Fa-f]{2})/.test(parsed.pathname)) {
    throw new TypeError(
      'proof: a % in the path of url must begin an escape; write %25 for a plain one',
    )
  }
  return { method, uri: parsed.origin + parsed.pathname, token }
}
