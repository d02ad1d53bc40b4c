/**
 * Why a secret or a key must not travel to or from an address; `undefined` when it may. Does not
 * repeat the address, which may hold a secret.
 */
export function addressFault(address: string, allowInsecureHttp: boolean): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return 'must be an absolute https: URL'
  }
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (url.protocol === 'http:' && !allowInsecureHttp && !isLoopback(url.hostname)) {
    return 'must be https: (http: is for localhost, 127.0.0.0/8 and [::1], or with allowInsecureHttp)'
  }
  return undefined
}

// `URL` has already turned every spelling of an IPv4 address into four decimal numbers.
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
