import { randomUUID } from 'node:crypto'
import type { IdempotencyStore, Run } from 'express-service-auth'
import { digestOfParts } from '../../../src/base/digest.js'
import { encodeResult } from '../../../src/idempotency/buffered-response/stored-result.js'
import { begin, requestFor } from '../../stores/encrypted/encrypted-kit.js'
import type { RedisServer } from '../../support/redis/redis.js'
import { type Ran, runHere } from '../kit.js'

export const BODY = 'the body of an order that nobody may see'
const RESULT = encodeResult({ status: 201, headers: [], body: Buffer.from(BODY) })

export type Made = 'running' | 'abandoned' | 'finished' | 'not_stored' | 'freed'

/** A record in this state. */
export async function made(store: IdempotencyStore, state: Made): Promise<Run> {
  const run = await begin(store, requestFor({ recordId: digestOfParts([randomUUID()]) }))
  switch (state) {
    case 'abandoned':
      await store.settle(run, { type: 'abandoned' })
      break
    case 'finished':
      await store.settle(run, { type: 'finished', result: RESULT })
      break
    case 'not_stored':
      await store.settle(run, { type: 'not_stored' })
      break
    case 'freed':
      await store.settle(run, { type: 'released' })
      break
    default:
  }
  return run
}

export const ANSWER = ['--done', '201', '--header', 'Content-Type: application/json']

export function settleBy(
  { port }: Pick<RedisServer, 'port'>,
  argv: readonly string[],
  stdin = '',
): Promise<Ran> {
  const env = { REDIS_URL: `redis://127.0.0.1:${port}` }
  return runHere(['settle', '--timeout=5s', ...argv], { stdin, env })
}

/** The command on a record, whatever it begins with. */
export const settle = (
  server: Pick<RedisServer, 'port'>,
  record: string,
  ...options: readonly string[]
): Promise<Ran> => settleBy(server, [...options, '--', record])

/** The command on the record of a run, with the fence of that run. */
export const settleRun = (
  server: Pick<RedisServer, 'port'>,
  { recordId, fence }: Pick<Run, 'recordId' | 'fence'>,
  ...options: readonly string[]
): Promise<Ran> => settle(server, recordId, '--fence', String(fence), ...options)
