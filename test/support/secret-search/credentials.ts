import { LEAK_LENGTH } from './secret-search.js'
import { knowSecret } from './session.js'

const SECRET_HEADERS = new Map<string, (value: string) => void>([
  ['authorization', knowCredential],
  ['proxy-authorization', knowCredential],
  ['idempotency-key', (value) => knowSecret('an idempotency key', unquoted(value))],
  ['api-key', (value) => knowSecret('an API key', value)],
])

const SECRET_VARIABLE = /(?:KEY|TOKEN|SECRET|PASSWORD)$/
/** Not parsed as a URL, because a test may pass a malformed one. */
const PASSWORD_IN_URL = /^rediss?:\/\/[^:@]*:(.*)@/

/**
 * Tells the search a token and its signature. Ignores texts shorter than `LEAK_LENGTH`, such as `constructor` in a
 * malformed token.
 */
export function knowToken(token: string): void {
  if (token.length < LEAK_LENGTH) return
  knowSecret('a token', token)
  const signature = token.split('.')[2] ?? ''
  if (signature.length >= LEAK_LENGTH) knowSecret('a signature', signature)
}

/** Tells the search the secrets in headers; `headers` has names and values in turn. */
export function knowHeaders(headers: readonly unknown[]): void {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const know = SECRET_HEADERS.get(String(headers[index]).toLowerCase())
    for (const value of [headers[index + 1]].flat()) know?.(String(value))
  }
}

/** Tells the search the secrets in the environment of a child process. */
export function knowEnvironment(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value = ''] of Object.entries(environment)) {
    const password = PASSWORD_IN_URL.exec(value)?.[1]
    if (password !== undefined) knowSecret('a Redis password', password)
    else if (SECRET_VARIABLE.test(name)) knowSecret('an API key', value)
  }
}

/** Tells the search the passwords in a command to Redis or in a line of its configuration. */
export function knowRedisWords(words: readonly string[]): void {
  const line = words.join(' ')
  const all = line.matchAll(/(?:^auth|requirepass|masterauth|primaryauth) (\S+)|(?:^| )>(\S+)/gi)
  for (const [, named, ofUser] of all) knowSecret('a Redis password', named ?? ofUser ?? '')
}

/** Tells the search each word of the header, because a test may send a malformed credential. */
function knowCredential(value: string): void {
  for (const word of value.split(/[\s,]+/)) knowToken(word)
}

const unquoted = (value: string): string =>
  value.startsWith('"') && value.endsWith('"')
    ? value.slice(1, -1).replace(/\\(["\\])/g, '$1')
    : value
