import express from 'express'
import { type ServiceAuth, serviceAuth } from 'express-service-auth'
import { createTestIssuer, hostileTokens, type TestIssuer } from 'express-service-auth/testing'
import fc from 'fast-check'
import { decodeProtectedHeader } from 'jose'
import { openReceiver, type Receiver } from '../support/receiver/open-receiver.js'
import { mutantsOf } from './mutations.js'
import { signatureOracle } from './oracle.js'
import { asHeaderValue, sendAll } from './wire.js'

interface FuzzOptions {
  readonly seed: number
  readonly seconds: number
  /** Goes on until there were so many, on a machine that is slow. */
  readonly leastExecutions?: number
}

interface FuzzReport {
  readonly executions: number
  readonly statuses: Readonly<Record<number, number>>
  /** Of the heap, between the first tenth of the run and its end; garbage is collected where it can be. */
  readonly grownBytes: number
  /** What must not happen, with the credential that made it happen. */
  readonly violations: readonly string[]
}

const BATCH = 200
const REFUSED = new Set([401, 403])
const MAX_VIOLATIONS = 10

/**
 * Sends mutated credentials to a real server, and watches that only the contract's outcomes happen.
 * fast-check makes them. Its runner awaits each case before the next and ends after so many; this loop
 * sends hundreds at once on one connection, ends after so much time, and watches the heap.
 */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { seed, seconds, leastExecutions = 0 } = options
  const issuer = await createTestIssuer()
  const auth = serviceAuth(issuer.policy())
  await auth.ready()
  const receiver = await startReceiver(auth)
  const corpus = seedsOf(issuer)
  const credentials = credentialsFrom(corpus)
  const isSigned = await signatureOracle(issuer.jwksUri)
  const statuses: Record<number, number> = {}
  const violations: string[] = []
  const started = performance.now()
  const elapsed = (): number => (performance.now() - started) / 1000
  let executions = 0
  let batches = 0
  // Each as it is, so that some are let in whatever the seed picks afterwards.
  let values: readonly string[] = corpus
  let heapAtStart: number | undefined
  const isOver = (): boolean => elapsed() >= seconds && executions >= leastExecutions
  while (!isOver() && violations.length < MAX_VIOLATIONS) {
    const answers = await sendAll(receiver.port, values)
    for (const [index, status] of answers.entries()) {
      statuses[status] = (statuses[status] ?? 0) + 1
      const value = values[index] ?? ''
      if (REFUSED.has(status)) continue
      if (status === 200 && (await isSigned(value))) continue
      if (status === 503 && namesUnknownKey(value, issuer)) continue
      violations.push(`${status} for ${JSON.stringify(value)}`)
    }
    if (answers.length < values.length) violations.push('the server hung up')
    executions += answers.length
    values = fc.sample(credentials, { seed: seed + batches, numRuns: BATCH })
    batches += 1
    if (heapAtStart === undefined && elapsed() > seconds / 10) heapAtStart = heapUsed()
  }
  const grownBytes = heapUsed() - (heapAtStart ?? heapUsed())
  auth.close()
  await receiver.close()
  await issuer.close()
  const faults = receiver.errors.map((error) => `an exception: ${error}`)
  return { executions, statuses, grownBytes, violations: [...violations, ...faults] }
}

/** A receiver looks for two unknown keys in 10 s, and cannot decide on others. */
function namesUnknownKey(value: string, { kid, staticKid }: TestIssuer): boolean {
  try {
    const header = decodeProtectedHeader(value.trim().replace(/^bearer /i, ''))
    return header.kid !== kid && header.kid !== staticKid
  } catch {
    return false
  }
}

const GOOD_TOKENS = 20

function seedsOf(issuer: TestIssuer): string[] {
  const good = Array.from({ length: GOOD_TOKENS }, (_, index) =>
    issuer.token({ jti: `t-${index}` }),
  )
  const hostile = hostileTokens(issuer).map(({ authorization }) => authorization)
  return [...good.map((token) => `Bearer ${token}`), ...hostile]
}

/** Most have a mutated token, some another scheme as well, and some are as they are. */
function credentialsFrom(corpus: readonly string[]): fc.Arbitrary<string> {
  const tokens = corpus.map((credential) => credential.replace(/^bearer /i, ''))
  const withScheme = mutantsOf(tokens).map((token) => `Bearer ${token}`)
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...corpus) },
    { weight: 20, arbitrary: mutantsOf(corpus).map(asHeaderValue) },
    { weight: 78, arbitrary: withScheme.map(asHeaderValue) },
  )
}

const startReceiver = (auth: ServiceAuth): Promise<Receiver> =>
  openReceiver({
    express,
    maxHeaderSize: 64 * 1024,
    mount: (app) => app.use(auth),
  })

function heapUsed(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
