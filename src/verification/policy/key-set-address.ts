import { addressFault } from '../../base/http-address.js'
import type { KeySet } from '../key-set/key-set.js'

/** Where a policy's keys come from: a shared key set, or an address for one of its own. */
export type KeySetAddress =
  | { readonly kind: 'shared'; readonly keySet: KeySet }
  | {
      readonly kind: 'own'
      readonly jwksUri: string
      readonly allowInsecureHttp: boolean
      readonly staleIfErrorSeconds: number | undefined
    }

interface AddressOptions {
  readonly issuer: string
  readonly apiBasePath?: string | undefined
  readonly jwksUri?: string | undefined
  readonly keySet?: KeySet | undefined
  readonly allowInsecureHttp?: boolean | undefined
  readonly staleIfErrorSeconds?: number | undefined
}

const DEFAULT_API_BASE_PATH = '/auth'

/** Without `keySet` and `jwksUri` the address is made of `issuer` and `apiBasePath`. */
export function readKeySetAddress(options: AddressOptions): KeySetAddress {
  if (options.keySet !== undefined) return { kind: 'shared', keySet: options.keySet }
  const basePath = options.apiBasePath ?? DEFAULT_API_BASE_PATH
  const jwksUri =
    options.jwksUri ?? `${options.issuer}${basePath === '/' ? '' : basePath}/jwt/jwks.json`
  const { allowInsecureHttp = false, staleIfErrorSeconds } = options
  return { kind: 'own', jwksUri, allowInsecureHttp, staleIfErrorSeconds }
}

export function keySetAddressFaults(policy: Readonly<Record<string, unknown>>): string[] {
  const { issuer, keySet, jwksUri, apiBasePath } = policy
  const allowInsecureHttp = policy['allowInsecureHttp'] === true
  if (keySet !== undefined) return faultsBesideKeySet(policy)
  const faults: string[] = []
  if (typeof apiBasePath === 'string' && !isBasePath(apiBasePath)) {
    faults.push('apiBasePath must start with / and have no trailing slash, query or fragment')
  }
  if (typeof jwksUri === 'string' && jwksUri !== '') {
    const fault = addressFault(jwksUri, allowInsecureHttp)
    if (fault !== undefined) faults.push(`jwksUri ${fault}`)
  } else if (jwksUri === undefined && typeof issuer === 'string' && issuer !== '') {
    const fault = issuerFault(issuer, allowInsecureHttp)
    if (fault !== undefined) faults.push(`issuer ${fault}`)
  }
  return faults
}

function faultsBesideKeySet(policy: Readonly<Record<string, unknown>>): string[] {
  return ['jwksUri', 'apiBasePath', 'allowInsecureHttp', 'staleIfErrorSeconds']
    .filter((name) => policy[name] !== undefined)
    .map((name) => `${name} cannot be combined with keySet, which has its own`)
}

function isBasePath(path: string): boolean {
  return path === '/' || (path.startsWith('/') && !path.endsWith('/') && !/[?#\s\\]/.test(path))
}

function issuerFault(issuer: string, allowInsecureHttp: boolean): string | undefined {
  if (!/^https?:\/\/[^/?#\s\\][^?#\s\\]*$/i.test(issuer) || issuer.endsWith('/')) {
    return (
      'must be an absolute http(s) URL without query, fragment or trailing slash, such as ' +
      'https://core.example (or give jwksUri)'
    )
  }
  return addressFault(issuer, allowInsecureHttp)
}
