import type { CallOrder } from '../protocol.js'

/** What is sent of a call, beside its token and its number. */
export interface Composed {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly idempotencyKey?: string | undefined
  readonly body?: string | undefined
}

const BODIES = {
  usual: JSON.stringify({ item: 'lamp', quantity: 1 }),
  another: JSON.stringify({ item: 'lamp', quantity: 2 }),
} as const

/** The order that is on the books before the first call. */
const READ_PATH = '/orders/o-1'
const WRITE_PATH = '/orders'

export function compose(
  { method, body }: Pick<CallOrder, 'method' | 'body'>,
  idempotencyKey: string | undefined,
): Composed {
  if (method === 'GET') return { method, path: READ_PATH }
  return { method, path: WRITE_PATH, idempotencyKey, body: BODIES[body] }
}

export interface Addressed {
  /** That of the receiver. */
  readonly url: string
  readonly authorization: string
  /** Of the key that the token is bound to. */
  readonly proof?: string
  /** The PEM file of the client certificate. */
  readonly certificatePath?: string
  /** The number of the call; receivers repeat it in their reports. */
  readonly call: string
}

/** The bytes of the request. A header goes over the wire as latin1. */
export function requestBytes(composed: Composed, addressed: Addressed): Buffer {
  const head = Buffer.from(headOf(composed, addressed), 'latin1')
  return Buffer.concat([head, Buffer.from(composed.body ?? '')])
}

/** The same for people: of the token and the proof only their beginnings are shown. */
export function requestText(composed: Composed, addressed: Addressed): string {
  const { proof } = addressed
  const cut = {
    authorization: cutAuthorization(addressed.authorization),
    ...(proof !== undefined && { proof: cutAuthorization(proof) }),
  }
  return headOf(composed, { ...addressed, ...cut }) + (composed.body ?? '')
}

/**
 * The same as a command for a POSIX shell. The credential comes on standard input, because other users
 * can see the arguments of a process; `printf` runs in the shell.
 */
export function curlCommand(
  { path, idempotencyKey, body }: Composed,
  { url, authorization, proof, certificatePath }: Addressed,
): string {
  const curl = [
    `curl -sSi -w '\\n' -H @-`,
    ...(idempotencyKey === undefined ? [] : [`-H 'Idempotency-Key: "${idempotencyKey}"'`]),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `--data-raw ${quoted(body)}`]),
    // Nobody has signed the certificate of the receiver.
    ...(certificatePath === undefined ? [] : [`-k --cert ${quoted(certificatePath)}`]),
    quoted(`${url}${path}`),
  ]
  const lines = [
    authorizationLine(authorization),
    ...(proof === undefined ? [] : [`DPoP: ${proof}`]),
  ]
  const header = printfFormat(lines.join('\n'))
  return `printf ${quoted(header)} |\n  ${curl.join(' \\\n    ')}`
}

/** To curl, a header that ends with a colon is one to leave out. */
const authorizationLine = (value: string): string =>
  value === '' ? 'Authorization;' : `Authorization: ${value}`

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A `printf` format that prints the text, its characters as latin1. */
const printfFormat = (text: string): string =>
  text
    .replace(/[\\%]/g, '$&$&')
    .replace(/[^ -~]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, '0')}`)

const END_OF_LINE = '\r\n'

function headOf({ method, path, idempotencyKey, body }: Composed, addressed: Addressed): string {
  const { url, authorization, proof, call } = addressed
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    `Authorization: ${authorization}`,
    ...(proof === undefined ? [] : [`DPoP: ${proof}`]),
    `X-Room-Call: ${call}`,
    ...(idempotencyKey === undefined ? [] : [`Idempotency-Key: "${idempotencyKey}"`]),
    ...(body === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
    'Connection: close',
  ]
  return lines.map((line) => line + END_OF_LINE).join('') + END_OF_LINE
}

const SHOWN_CHARACTERS = 40

/** The beginning of the header: never enough of a token to be used. */
export function cutAuthorization(authorization: string): string {
  if (authorization.length <= SHOWN_CHARACTERS) return authorization
  return `${authorization.slice(0, SHOWN_CHARACTERS)}…`
}
