/** A problem document (RFC 9457) with its headers, as it is sent. */
export interface Refusal<Status extends number> {
  readonly status: Status
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Buffer
}

export interface Problem {
  readonly type: string
  readonly title: string
}

export function refusal<const Status extends number>(
  status: Status,
  { type, title }: Problem,
  ...headers: readonly (readonly [string, string])[]
): Refusal<Status> {
  const body = Buffer.from(JSON.stringify({ type, title, status }))
  return {
    status,
    body,
    headers: [
      ['Content-Type', PROBLEM_MEDIA_TYPE],
      ['Content-Length', String(body.byteLength)],
      ['Cache-Control', 'no-store'],
      ...headers,
    ],
  }
}

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export const blank = (title: string): Problem => ({ type: 'about:blank', title })

/** The `type` of a problem of ours. */
export const problemType = (name: string): string => `urn:express-service-auth:${name}`

/** RFC 6750, section 3. */
export const challenge = (parameter: string): readonly [string, string] => [
  'WWW-Authenticate',
  `Bearer realm="service"${parameter}`,
]

/** The 401 for an invalid token. Its bytes are constant, so a calling service can recognise it. */
export const INVALID_TOKEN: Refusal<401> = refusal(
  401,
  blank('Unauthorized'),
  challenge(', error="invalid_token"'),
)
