import { z } from 'zod'
import { addressFault, type ConnectionFault } from '../../base/fetch.js'

/**
 * The reason why the core gave no answer: a closed list.
 *
 * - `api_key_unavailable`: the key function threw, returned no valid key or took too long. Nothing was
 *   sent, or only a request that the core refused because of its key.
 * - `timeout`: there was no complete answer in time.
 * - `unreachable`: there was no connection, or it was closed early.
 */
export type CoreFailureCode = 'api_key_unavailable' | 'timeout' | 'unreachable'

/**
 * The error if the core gave no answer. Never has a cause, because the error of a `fetch` can hold data
 * that was sent or received.
 */
export class CoreFailure extends Error {
  override readonly name = 'CoreFailure'
  readonly code: CoreFailureCode
  /** Whether the core may have carried out the request. */
  readonly mayHaveArrived: boolean
  /** Node's error code of the connection, such as `ECONNREFUSED`. */
  declare readonly systemCode?: string

  constructor(code: CoreFailureCode, fault?: ConnectionFault) {
    const { systemCode, isBeforeConnection = false } = fault ?? {}
    super(`the core gave no answer: ${systemCode === undefined ? code : `${code}, ${systemCode}`}`)
    this.code = code
    this.mayHaveArrived = code !== 'api_key_unavailable' && !isBeforeConnection
    if (systemCode !== undefined) this.systemCode = systemCode
  }
}

/** An API key of the core, or a function that returns one and is called before each request. */
export type ApiKey = string | (() => string | Promise<string>)

const API_KEY = /^[\x21-\x7e]{1,1024}$/

/** 1 to 1024 visible ASCII characters, which a header can hold; refuses also a line break at the end. */
const isApiKey = (value: unknown): value is string =>
  typeof value === 'string' && API_KEY.test(value)

export const apiKeyOption = (): z.ZodCustom<ApiKey, ApiKey> =>
  z.custom<ApiKey>((value) => isApiKey(value) || typeof value === 'function', {
    error: 'must be 1 to 1024 visible ASCII characters, or a function that gives them',
  })

/**
 * Returns the key for the next request.
 *
 * @throws CoreFailure without a cause, because the error of a key function may hold the key.
 */
export async function currentKey(apiKey: ApiKey): Promise<string> {
  let key: unknown = apiKey
  try {
    if (typeof apiKey === 'function') key = await apiKey()
  } catch {
    key = undefined
  }
  if (isApiKey(key)) return key
  throw new CoreFailure('api_key_unavailable')
}

/** Returns the problems of an address that is a string; the schema reports any other value. */
export function baseUrlFaults(
  path: string,
  { baseUrl, allowInsecureHttp }: Readonly<Record<'baseUrl' | 'allowInsecureHttp', unknown>>,
): string[] {
  if (typeof baseUrl !== 'string' || baseUrl === '') return []
  const fault = addressFault(baseUrl, allowInsecureHttp === true)
  if (fault !== undefined) return [`${path} ${fault}`]
  // An empty query counts, too: an appended path would become part of it.
  return /[?#]/.test(baseUrl) ? [`${path} must not hold a query or a fragment`] : []
}

/** Returns the URL of an operation; `path` begins with a slash. The base URL may have a path. */
export const operationUrl = (baseUrl: string, path: string): string =>
  new URL(baseUrl).href.replace(/\/+$/, '') + path
