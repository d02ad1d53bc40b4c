import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestIssuer } from 'express-service-auth/testing'
import { expect } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'
import { expectResult } from './answers.js'
import { type Answer, type Exchange, type Post, post } from './exchange.js'
import { launchStopping, type ReceiverProcess } from './receiver-process.js'
import { LEASE_MS, type Stop } from './stops.js'

/** A write that a caller wants once. */
export interface Order {
  readonly whenAbandoned: 'refuse' | 'rerun'
  readonly key: string
  readonly isLarge: boolean
}

export interface LaunchOptions {
  readonly express?: '4' | '5'
  readonly clockErrorMs?: number
  readonly timeoutMs?: number
  readonly leaseMs?: number
  /** How long it serves on after a signal, and how long it then waits. */
  readonly serveOnMs?: number
  readonly waitMs?: number
}

/** One Redis, one issuer and one ledger, with as many receivers as a test launches. */
export interface Scene {
  readonly redis: RedisServer
  readonly issuer: TestIssuer
  launch(options?: LaunchOptions): Promise<ReceiverProcess>
  send(to: ReceiverProcess, order: Order, over?: Pick<Partial<Post>, 'stopAt' | 'token'>): Exchange
  /** Retries until it is not answered with 409 request-in-progress any more. */
  retry(to: ReceiverProcess, order: Order): Promise<Retries>
  /** The fences of the runs that have written, in order. */
  effects(order: Order): Promise<number[]>
  /** One run has written the order, and this is what it answered, itself or kept. */
  expectWritten(order: Order, answer: Answer, as?: { isReplayed: boolean }): Promise<void>
  /** Resolves once the receiver reaches Redis. */
  storeAnswers(receiver: ReceiverProcess): Promise<void>
  close(): Promise<void>
}

export interface Retries {
  readonly inProgress: readonly Answer[]
  readonly final: Answer
}

export const newOrder = (whenAbandoned: Order['whenAbandoned'], isLarge = false): Order => ({
  whenAbandoned,
  key: randomUUID(),
  isLarge,
})

const PROGRAM = new URL('receiver.ts', import.meta.url)
const POLL_MS = 25
/** How long Redis may take where that is not what is tested: a busy machine is slow. */
const PATIENCE_MS = 10_000

export async function openScene(): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-faults-'))
  const ledger = join(folder, 'ledger')
  await writeFile(ledger, '')
  const issuer = await createTestIssuer()
  const redis = await startRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })
  const receivers: ReceiverProcess[] = []

  const send: Scene['send'] = ({ port }, order, { token = issuer.token(), ...over } = {}) => {
    const { whenAbandoned, key, isLarge } = order
    return post(port, { path: `/${whenAbandoned}`, key, token, body: { isLarge }, ...over })
  }

  const effects: Scene['effects'] = async ({ key }) => {
    const lines = (await readFile(ledger, 'utf8')).split('\n')
    const own = lines.filter((line) => line.startsWith(`${key} `))
    return own.map((line) => Number(line.slice(key.length + 1)))
  }

  return {
    redis,
    issuer,
    send,
    effects,
    async expectWritten(order, answer, { isReplayed } = { isReplayed: false }) {
      const [fence, ...others] = await effects(order)
      expect(others).toEqual([])
      expectResult(answer, order, { fence, isReplayed })
    },
    async launch(options = {}) {
      const { express = '5', clockErrorMs = 0, timeoutMs = PATIENCE_MS } = options
      const receiver = await launchStopping<Stop | 'closed', { port: number }>(PROGRAM, {
        LEDGER: ledger,
        ISSUER: issuer.url,
        REDIS: JSON.stringify({ host: redis.host, port: redis.port }),
        EXPRESS: express,
        CLOCK_ERROR_MS: String(clockErrorMs),
        TIMEOUT_MS: String(timeoutMs),
        LEASE_MS: String(options.leaseMs ?? LEASE_MS),
        SERVE_ON_MS: String(options.serveOnMs ?? 0),
        WAIT_MS: String(options.waitMs ?? PATIENCE_MS),
      })
      receivers.push(receiver)
      return receiver
    },
    async retry(to, order) {
      const inProgress: Answer[] = []
      for (;;) {
        const answer = await send(to, order).answer
        if (answer.problem !== 'request-in-progress') return { inProgress, final: answer }
        expect(answer).toMatchObject({ status: 409, retryAfter: expect.stringMatching(/^[1-5]$/) })
        inProgress.push(answer)
        await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
    },
    storeAnswers: ({ port }) =>
      until('the store answers', async () => (await fetch(`http://127.0.0.1:${port}/store`)).ok),
    async close() {
      await Promise.all(receivers.map((receiver) => receiver.kill()))
      await redis.stop()
      await issuer.close()
      await rm(folder, { recursive: true })
    },
  }
}
