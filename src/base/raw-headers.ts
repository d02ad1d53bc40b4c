import { wrongWiring } from './decision/service-auth-error.js'

/** Names and values in turn, as they came on the wire. */
export type RawHeaders = readonly string[]

/** The two forms in which Node gives the headers of a request. */
export interface WireHeaders {
  readonly rawHeaders: RawHeaders
  readonly headers: { readonly [lowerCaseName: string]: string | readonly string[] | undefined }
}

/**
 * The values of one header, in the order in which they came. `rawHeaders` are what counts: `headers`
 * keep one of several values, and anybody may change them.
 *
 * @throws ServiceAuthError when `rawHeaders` lack a header that `headers` hold.
 */
export function headerValues(wire: WireHeaders, lowerCaseName: string): string[] {
  const { rawHeaders } = wire
  if (!Array.isArray(rawHeaders)) throw lacking(lowerCaseName)
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? ''
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) {
      values.push(rawHeaders[index + 1] ?? '')
    }
  }
  if (values.length === 0 && isOnlyInHeaders(wire, lowerCaseName)) throw lacking(lowerCaseName)
  return values
}

/** The option of serverless-http that corrects it. */
const HOOK =
  'request: (request) => { request.rawHeaders = Object.entries(request.headers).flat().map(String) }'

/** Adapters that make requests without Node's server may fill `headers` only, in any case of names. */
const isOnlyInHeaders = ({ rawHeaders, headers }: WireHeaders, lowerCaseName: string): boolean =>
  headers?.[lowerCaseName] !== undefined ||
  (rawHeaders.length === 0 && Object.keys(headers ?? {}).length > 0)

const lacking = (name: string) =>
  wrongWiring(
    `${name} cannot be read: the request's rawHeaders lack what its headers hold. Whatever makes or changes the request has to fill rawHeaders as Node does. serverless-http does so with the option ${HOOK}`,
  )
