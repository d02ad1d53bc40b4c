import { CoreFailure } from './core-failure.js'

/** An API key of the core, or what gives one: asked before each request. */
export type ApiKey = string | (() => string | Promise<string>)

const API_KEY = /^[\x21-\x7e]{1,1024}$/

/** 1 to 1024 visible ASCII characters: what can stand in a header, so without a line break at its end. */
export const isApiKey = (value: unknown): value is string =>
  typeof value === 'string' && API_KEY.test(value)

/**
 * The key that counts now.
 *
 * @throws CoreFailure without a cause: what a key function throws may hold the key.
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
