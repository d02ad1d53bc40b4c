/** Returns the bytes of a refusal, except its `Date`. */
function refusal(status: number, title: string, header: string): string {
  const body = JSON.stringify({ type: 'about:blank', title, status })
  return [
    `HTTP/1.1 ${status} ${title}`,
    'X-Powered-By: Express',
    'Content-Type: application/problem+json',
    `Content-Length: ${body.length}`,
    'Cache-Control: no-store',
    header,
    'Connection: close',
    '',
    body,
  ].join('\r\n')
}

export const NO_TOKEN: string = refusal(
  401,
  'Unauthorized',
  'WWW-Authenticate: Bearer realm="service"',
)
export const INVALID_TOKEN: string = refusal(
  401,
  'Unauthorized',
  'WWW-Authenticate: Bearer realm="service", error="invalid_token"',
)
export const FORBIDDEN: string = refusal(
  403,
  'Forbidden',
  'WWW-Authenticate: Bearer realm="service", error="insufficient_scope"',
)
export const UNAVAILABLE: string = refusal(503, 'Service Unavailable', 'Retry-After: 5')

/** Returns the bytes of the refusal of a HEAD request. */
export const withoutBody = (refusalBytes: string): string =>
  refusalBytes.slice(0, refusalBytes.indexOf('\r\n\r\n') + 4)
