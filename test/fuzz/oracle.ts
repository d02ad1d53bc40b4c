import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from 'jose'
import { JOSEError } from 'jose/errors'

/**
 * Says of a header value whether a key of the set has signed it. By jose: the package verifies with
 * node:crypto, and an oracle on the same library would share its faults.
 */
export async function signatureOracle(
  jwksUri: string,
): Promise<(value: string) => Promise<boolean>> {
  const keySet = createLocalJWKSet((await (await fetch(jwksUri)).json()) as JSONWebKeySet)
  return async (value) => {
    const token = /^bearer (\S+)$/i.exec(value.trim())?.[1]
    if (token === undefined) return false
    try {
      await compactVerify(token, keySet, { algorithms: ['RS256'] })
      return true
    } catch (error) {
      if (error instanceof JOSEError) return false
      throw error
    }
  }
}
