import { CoreFailure } from './core-failure.js'

/** An API key of the core, or a function that returns one and is called before each request. */
export type ApiKey = string | (() => string | Promise<string>)

const API_KEY = /^[\x21-\x7e]{1,1024}$/

/** 1 to 1024 visible ASCII characters, which a header can hold: no line break at the end either. */
export const isApiKey = (value: unknown): value is string =>
  typeof value === 'string' && API_KEY.test(value)

/**
 * Returns the key for the next request.
 *
 * @throws CoreFailure without a cause, because the error of a key function may hold the key.
 */
export async function currentKey(apiKey: ApiKey): Promise<string> {
  const key = await askedFor(apiKey)
  if (isApiKey(key)) return key
  throw new CoreFailure('api_key_unavailable')
}

async function askedFor(apiKey: ApiKey): Promise<unknown> {
  try {
    return typeof apiKey === 'string' ? apiKey : await apiKey()
  } catch {
    throw new CoreFailure('api_key_unavailable')
  }
}
