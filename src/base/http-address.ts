/** The ports of other protocols, which `fetch` refuses (Fetch Standard, section 2.9, port blocking). */
const BLOCKED_PORTS = new Set([
  ...[1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101],
  ...[102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389],
  ...[427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636],
  ...[989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665],
  ...[6666, 6667, 6668, 6669, 6679, 6697, 10_080],
])

/**
 * What makes an address unfit to send secrets to or fetch keys from; `undefined` if it is fit. The text does not
 * repeat the address, which may hold a secret.
 */
export function addressFault(address: string, allowInsecureHttp: boolean): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return 'must be an absolute https: URL, such as https://core.example'
  }
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (url.protocol === 'http:' && !allowInsecureHttp && !isLoopback(url.hostname)) {
    return 'must be https: (http: is for localhost, 127.0.0.0/8 and [::1], or with allowInsecureHttp)'
  }
  if (BLOCKED_PORTS.has(Number(url.port))) {
    return `must not have the port ${url.port}: fetch refuses it (Fetch Standard, port blocking)`
  }
  return undefined
}

// `URL` has already turned every spelling of an IPv4 address into four decimal numbers.
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
