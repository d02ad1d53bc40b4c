import { z } from 'zod'
import { addressFault } from '../../base/fetch.js'
import { CoreFailure } from './core-failure.js'

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
  const key = await readKey(apiKey)
  if (isApiKey(key)) return key
  throw new CoreFailure('api_key_unavailable')
}

async function readKey(apiKey: ApiKey): Promise<unknown> {
  try {
    return typeof apiKey === 'string' ? apiKey : await apiKey()
  } catch {
    throw new CoreFailure('api_key_unavailable')
  }
}

/** Returns the problems of an address that is a string; the schema reports any other value. */
export function baseUrlFaults(
  path: string,
  { baseUrl, allowInsecureHttp }: Readonly<Record<'baseUrl' | 'allowInsecureHttp', unknown>>,
): string[] {
  if (typeof baseUrl !== 'string' || baseUrl === '') return []
  const fault = coreAddressFault(baseUrl, allowInsecureHttp === true)
  return fault === undefined ? [] : [`${path} ${fault}`]
}

/**
 * Returns why an address cannot be the core's, `undefined` if it can. Does not repeat the address,
 * which may hold a secret.
 */
function coreAddressFault(baseUrl: string, allowInsecureHttp: boolean): string | undefined {
  const fault = addressFault(baseUrl, allowInsecureHttp)
  if (fault !== undefined) return fault
  // An empty query counts, too: an appended path would become part of it.
  return /[?#]/.test(baseUrl) ? 'must not hold a query or a fragment' : undefined
}

/** Returns the URL of an operation; `path` begins with a slash. The base URL may have a path. */
export const operationUrl = (baseUrl: string, path: string): string =>
  new URL(baseUrl).href.replace(/\/+$/, '') + path
