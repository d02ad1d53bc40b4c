import { z } from 'zod'
import { type ApiKey, isApiKey } from './api-key.js'
import { coreAddressFault } from './core-address.js'

export const apiKeyOption = (): z.ZodCustom<ApiKey, ApiKey> =>
  z.custom<ApiKey>((value) => isApiKey(value) || typeof value === 'function', {
    error: 'must be 1 to 1024 visible ASCII characters, or a function that gives them',
  })

/** Returns the problems of an address that is a string; the schema reports any other value. */
export function baseUrlFaults(
  path: string,
  { baseUrl, allowInsecureHttp }: Readonly<Record<'baseUrl' | 'allowInsecureHttp', unknown>>,
): string[] {
  if (typeof baseUrl !== 'string' || baseUrl === '') return []
  const fault = coreAddressFault(baseUrl, allowInsecureHttp === true)
  return fault === undefined ? [] : [`${path} ${fault}`]
}
