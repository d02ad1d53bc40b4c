import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { type ServiceAuth, serviceAuth } from 'express-service-auth'
import { createTestIssuer, hostileTokens, type TestIssuer } from 'express-service-auth/testing'
import { mutate } from './mutate.js'
import { signatureOracle } from './oracle.js'
import { type Random, seededRandom } from './random.js'
import { asHeaderValue, sendAll } from './wire.js'

export interface FuzzOptions {
  readonly seed: number
  readonly seconds: number
}

export interface FuzzReport {
  readonly executions: number
  readonly statuses: Readonly<Record<number, number>>
  /** Of the heap, between the first tenth of the run and its end; garbage is collected where it can be. */
  readonly grownBytes: number
  /** What must not happen, with the credential that made it happen. */
  readonly violations: readonly string[]
}

const BATCH = 200
const ALLOWED = new Set([200, 401, 403])
const MAX_VIOLATIONS = 10

/** Sends mutated credentials to a real server, and watches that only the contract's outcomes happen. */
export async function fuzz({ seed, seconds }: FuzzOptions): Promise<FuzzReport> {
  const random = seededRandom(seed)
  const issuer = await createTestIssuer()
  const faults: string[] = []
  const { auth, port, close } = await startReceiver(issuer, faults)
  const corpus = seedsOf(issuer)
  const isSigned = await signatureOracle(issuer.jwksUri)
  const statuses: Record<number, number> = {}
  const violations: string[] = []
  const started = performance.now()
  const elapsed = (): number => (performance.now() - started) / 1000
  let executions = 0
  let heapAtStart: number | undefined
  while (elapsed() < seconds && violations.length < MAX_VIOLATIONS) {
    const values = Array.from({ length: BATCH }, () => nextValue(corpus, random))
    const answers = await sendAll(port, values)
    answers.forEach((status, index) => {
      statuses[status] = (statuses[status] ?? 0) + 1
      if (ALLOWED.has(status) && (status !== 200 || isSigned(values[index] ?? ''))) return
      violations.push(`${status} for ${JSON.stringify(values[index])}`)
    })
    if (answers.length < values.length) violations.push('the server hung up')
    executions += answers.length
    if (heapAtStart === undefined && elapsed() > seconds / 10) heapAtStart = heapUsed()
  }
  const grownBytes = heapUsed() - (heapAtStart ?? heapUsed())
  auth.close()
  await close()
  await issuer.close()
  return { executions, statuses, grownBytes, violations: [...violations, ...faults] }
}

const GOOD_TOKENS = 20

function seedsOf(issuer: TestIssuer): string[] {
  const good = Array.from({ length: GOOD_TOKENS }, (_, index) =>
    issuer.token({ jti: `t-${index}` }),
  )
  const hostile = hostileTokens(issuer).map(({ authorization }) => authorization)
  return [...good.map((token) => `Bearer ${token}`), ...hostile]
}

function nextValue(corpus: readonly string[], random: Random): string {
  const value = random.pick(corpus)
  return random.chance(0.02) ? value : asHeaderValue(mutate(value, random, corpus))
}

async function startReceiver(
  issuer: TestIssuer,
  faults: string[],
): Promise<{ auth: ServiceAuth; port: number; close(): Promise<void> }> {
  const auth = serviceAuth(issuer.policy())
  await auth.ready()
  const app = express()
  app.use(auth)
  app.get('/', (_req, res) => {
    res.end('ok')
  })
  app.use(((error, _req, res, _next) => {
    faults.push(`an exception: ${error}`)
    res.status(500).end()
  }) as express.ErrorRequestHandler)
  const server = createServer({ maxHeaderSize: 64 * 1024 }, app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return { auth, port: (server.address() as AddressInfo).port, close }
}

function heapUsed(): number {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}
