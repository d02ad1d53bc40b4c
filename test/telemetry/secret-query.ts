import { type KeySet, remoteKeySet } from 'express-service-auth'
import type { TestIssuer } from 'express-service-auth/testing'
import { onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'

/** Creates an issuer for one test, and its key set under a URL with a secret in the query. */
export async function issuerBehindSecretQuery(): Promise<{ own: TestIssuer; keySet: KeySet }> {
  const own = await createTestIssuer()
  const { jwksUri } = own
  const keySet = remoteKeySet({
    jwksUri: `${jwksUri}?key=s3cret`,
    fetch: (_address, init) => fetch(jwksUri, init),
  })
  onTestFinished(async () => {
    keySet.close()
    await own.close()
  })
  return { own, keySet }
}
