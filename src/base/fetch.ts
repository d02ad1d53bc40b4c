// What `fetch` sends, and what it returns or throws.

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
  return undefined
}

// `URL` has already turned every spelling of an IPv4 address into four decimal numbers.
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}

/** The methods whose case `fetch` corrects (Fetch Standard, "normalize a method"); any other is sent as it is. */
const NORMALISED_METHOD = /^(delete|get|head|options|post|put)$/i

/** The method as `fetch` sends it. */
export const sentMethod = (method: string): string =>
  NORMALISED_METHOD.test(method) ? method.toUpperCase() : method

/**
 * The body of a response; `undefined` if it has more than `maxBytes`. Bytes are counted after decompression, so
 * that a small response cannot grow without limit.
 */
export async function readResponseBody(
  response: Response,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** RFC 9110, section 5.6.7: the current form, and two obsolete ones that a recipient must still accept. */
const HTTP_DATES = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
]

/**
 * Milliseconds that `Retry-After` asks to wait (RFC 9110, section 10.2.3); `undefined` when it is
 * missing or malformed. A date is compared with the response's `Date`, so that the two clocks need
 * not agree, or with `now`, in ms since the epoch, if the response has no `Date`.
 */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const value = headers.get('retry-after') ?? ''
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const until = parseHttpDate(value)
  if (until === undefined) return undefined
  return Math.max(0, until - (parseHttpDate(headers.get('date') ?? '') ?? now))
}

function parseHttpDate(value: string): number | undefined {
  if (!HTTP_DATES.some((form) => form.test(value))) return undefined
  // The third form (asctime) names no zone, and means UTC.
  const time = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(time) ? undefined : time
}

/** Why a connection failed. */
export interface ConnectionFault {
  /** Node's code of the error, such as `ECONNREFUSED`. */
  readonly systemCode?: string
  /** No connection was made, so nothing was sent. */
  readonly isBeforeConnection: boolean
}

/** How many causes of causes are read; Node's chains are shorter. */
const MAX_CAUSES = 8
const SYSTEM_CODE = /^[A-Z][A-Z0-9_]{1,40}$/
/** The `syscall` of an error that Node had before it sent anything. */
const STEPS_BEFORE_CONNECTION = new Set(['connect', 'getaddrinfo'])
const CONNECT_TIMEOUT = 'UND_ERR_CONNECT_TIMEOUT'

/** Reads the innermost cause that has a code in the form of Node's codes. */
export function connectionFault(thrown: unknown): ConnectionFault {
  let fault: ConnectionFault = { isBeforeConnection: false }
  let cause = thrown
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
    const { code } = cause as NodeJS.ErrnoException
    if (typeof code === 'string' && SYSTEM_CODE.test(code)) {
      fault = { systemCode: code, isBeforeConnection: failedBeforeConnection(cause) }
    }
    cause = cause.cause
  }
  return fault
}

/** Node's code of the innermost cause that has one. */
export const systemCodeOf = (thrown: unknown): string | undefined =>
  connectionFault(thrown).systemCode

function failedBeforeConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // For a host name with several IP addresses, Node throws one error that holds the error of each.
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.every(failedBeforeConnection)
  }
  const { code, syscall = '' } = error as NodeJS.ErrnoException
  return code === CONNECT_TIMEOUT || STEPS_BEFORE_CONNECTION.has(syscall)
}
