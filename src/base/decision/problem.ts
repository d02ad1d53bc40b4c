/** A problem document (RFC 9457) with its headers, as it is sent. */
export interface Refusal<Status extends number> {
  readonly status: Status
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** JSON in ASCII. */
  readonly body: string
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
  const body = JSON.stringify({ type, title, status })
  return {
    status,
    body,
    headers: [
      ['Content-Type', PROBLEM_MEDIA_TYPE],
      ['Content-Length', String(body.length)],
      ['Cache-Control', 'no-store'],
      ...headers,
    ],
  }
}

export const PROBLEM_MEDIA_TYPE = 'application/problem+json'

export const blank = (title: string): Problem => ({ type: 'about:blank', title })

/** The 503 of a failed dependency. */
export const UNAVAILABLE = refusal(503, blank('Service Unavailable'), ['Retry-After', '5'])

/** The `type` of a problem of this package. */
export const problemType = (name: string): string => `urn:express-service-auth:${name}`

/** The schemes in a receiver's challenge: those with which it accepts tokens. */
export type Schemes = 'Bearer' | 'Bearer, DPoP' | 'DPoP'

/** One field with a challenge for each scheme (RFC 6750, section 3; RFC 9449, sections 7.1 and 7.2). */
function challenge(schemes: Schemes, error?: string): readonly [string, string] {
  const parameter = error === undefined ? '' : `, error="${error}"`
  const bearer = `Bearer realm="service"${parameter}`
  const dpop = `DPoP algs="ES256"${parameter}`
  const value = { Bearer: bearer, 'Bearer, DPoP': `${bearer}, ${dpop}`, DPoP: dpop }
  return ['WWW-Authenticate', value[schemes]]
}

/** Makes a refusal that has a challenge for each of `Schemes`. */
export const challenged = <const Status extends number>(
  status: Status,
  title: string,
  error?: string,
): Readonly<Record<Schemes, Refusal<Status>>> => {
  const make = (schemes: Schemes) => refusal(status, blank(title), challenge(schemes, error))
  return { Bearer: make('Bearer'), 'Bearer, DPoP': make('Bearer, DPoP'), DPoP: make('DPoP') }
}

/** The 401 for an invalid token. Its bytes are constant, so a calling service can recognise it. */
export const INVALID_TOKEN: Readonly<Record<Schemes, Refusal<401>>> = challenged(
  401,
  'Unauthorized',
  'invalid_token',
)
