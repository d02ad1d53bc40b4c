import express from 'express'
import { createTestIssuer, hostileTokens, type TestIssuer } from 'express-service-auth/testing'
import fc from 'fast-check'
import { compactVerify, createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet } from 'jose'
import { JOSEError } from 'jose/errors'
import { expect, it, onTestFinished } from 'vitest'
import { pipeline } from '../support/network/pipeline.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { mutantsOf } from './mutations.js'

const BATCH = 200
const BATCHES = 20
const GOOD_TOKENS = 20
const MAX_LENGTH = 30_000
const REFUSED = [401, 403]

const tokenIn = (credential: string): string => credential.trim().replace(/^bearer /i, '')

/** As a header can carry it: Node's parser answers control characters itself, and hangs up. */
const asHeaderValue = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are meant
  value.slice(0, MAX_LENGTH).replace(/[\x00-\x08\x0a-\x1f\x7f\u0100-\uffff]/g, '?')

function seedsOf(issuer: TestIssuer): string[] {
  const good = Array.from({ length: GOOD_TOKENS }, (_, index) =>
    issuer.token({ jti: `t-${index}` }),
  )
  const hostile = hostileTokens(issuer).map(({ authorization }) => authorization)
  return [...good.map((token) => `Bearer ${token}`), ...hostile]
}

/** Most have a mutated token, some another scheme as well, and some are as they are. */
function credentialsFrom(corpus: readonly string[]): fc.Arbitrary<string> {
  const withScheme = mutantsOf(corpus.map(tokenIn)).map((token) => `Bearer ${token}`)
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...corpus) },
    { weight: 20, arbitrary: mutantsOf(corpus).map(asHeaderValue) },
    { weight: 78, arbitrary: withScheme.map(asHeaderValue) },
  )
}

/**
 * Says of a credential whether a key of the set has signed it. By jose: the package verifies with node:crypto, and an
 * oracle on the same library would share its faults.
 */
async function signatureOracle(jwksUri: string): Promise<(value: string) => Promise<boolean>> {
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

/** A receiver looks for two unknown keys in 10 s, and cannot decide on others. */
function namesUnknownKey(value: string, { kid, staticKid }: TestIssuer): boolean {
  try {
    const header = decodeProtectedHeader(tokenIn(value))
    return header.kid !== kid && header.kid !== staticKid
  } catch {
    return false
  }
}

it('mutated credentials never get more than the contract allows', async () => {
  const issuer = await createTestIssuer()
  onTestFinished(() => issuer.close())
  const auth = authFor(issuer.policy())
  await auth.ready()
  const mount = (app: express.Express) => void app.use(auth)
  const receiver = await startReceiver({ express, maxHeaderSize: 64 * 1024, mount })
  const corpus = seedsOf(issuer)
  const isSigned = await signatureOracle(issuer.jwksUri)
  // Each as it is, so that some are let in whatever the seed picks afterwards.
  const values = [
    ...corpus,
    ...fc.sample(credentialsFrom(corpus), { seed: 1, numRuns: BATCH * BATCHES }),
  ]
  const statuses = new Set<number>()
  const violations: string[] = []
  while (values.length > 0) {
    const batch = values.splice(0, BATCH)
    const answers = await pipeline(receiver.port, batch)
    expect(answers).toHaveLength(batch.length)
    for (const [index, status] of answers.entries()) {
      statuses.add(status)
      const value = batch[index] ?? ''
      if (REFUSED.includes(status)) continue
      if (status === 200 && (await isSigned(value))) continue
      if (status === 503 && namesUnknownKey(value, issuer)) continue
      violations.push(`${status} for ${JSON.stringify(value)}`)
    }
  }
  expect(violations).toEqual([])
  expect(receiver.errors).toEqual([])
  expect([...statuses]).toEqual(expect.arrayContaining([200, 401]))
})
