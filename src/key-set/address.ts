/**
 * Why an address cannot be that of a key set; `undefined` when it can. Does not repeat the address,
 * which may hold a secret.
 */
export function jwksUriFault(address: string, allowInsecureHttp: boolean): string | undefined {
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

/** The address as operators may see it: its query may hold a secret. */
export const withoutQuery = (jwksUri: string): string => jwksUri.split(/[?#]/, 1)[0] ?? ''

const addresses = new WeakMap<object, string>()

/** Remembers which key set is behind an object that users hold. */
export function withAddress<Holder extends object>(
  holder: Holder,
  jwksUri: string | undefined,
): Holder {
  if (jwksUri !== undefined) addresses.set(holder, withoutQuery(jwksUri))
  return holder
}

/** The address of the key set behind it, without its query; `undefined` of other objects. */
export const addressOf = (holder: object): string | undefined => addresses.get(holder)
