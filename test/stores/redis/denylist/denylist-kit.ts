import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import {
  type RedisClientLike,
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from 'express-service-auth/redis'
import { onTestFinished } from 'vitest'
import type { DenylistEvent } from '../../../../src/base/decision/store-event.js'
import type { DenylistEntry } from '../../../../src/verification/denylist/denylist-entry.js'
import { endClient, LIBRARY } from '../../../support/redis/redis-clients.js'
import { until } from '../../../support/until.js'

export const ISSUER = 'https://core.example'

/** For a write that nothing is to hold up: a busy machine may stand still for longer than its default. */
export const PATIENTLY = { timeoutMs: 20_000 }

/** A denylist on a user's client; both end with the test. */
export function denylistOn(
  redis: RedisClientLike,
  options: RedisDenylistOptions = {},
): RedisDenylist {
  const denylist = redisDenylist(redis, options)
  onTestFinished(() => {
    denylist.close()
    endClient(redis)
  })
  return denylist
}

export function openDenylist(
  { port }: { port: number },
  options: RedisDenylistOptions = {},
): RedisDenylist {
  return denylistOn(LIBRARY.connect({ port }), options)
}

export const entryOf = (changes: Partial<DenylistEntry> = {}): DenylistEntry => ({
  issuer: ISSUER,
  kind: 'caller',
  value: 'orders',
  reason: 'its key was stolen',
  by: 'ops',
  at: 1_790_000_000,
  until: null,
  ...changes,
})

/** Whether the receiver refuses the caller; `undefined` when it knows nothing. */
export const refuses = (denylist: RedisDenylist, caller: string): boolean | undefined =>
  denylist.lists(ISSUER)?.callers.has(caller)

export const untilRefused = (denylist: RedisDenylist, caller: string): Promise<void> =>
  until(`${caller} is denied`, async () => refuses(denylist, caller) === true)

export const untilAccepted = (denylist: RedisDenylist, caller: string): Promise<void> =>
  until(`${caller} is not denied`, async () => refuses(denylist, caller) === false)

export const untilState = (denylist: RedisDenylist, state: string): Promise<void> =>
  until(`the denylist is ${state}`, async () => denylist.health().state === state)

/** What operators are told from now on. */
export function hearDenylist(): DenylistEvent[] {
  const heard: DenylistEvent[] = []
  const listen = (event: unknown): void => void heard.push(event as DenylistEvent)
  subscribe('express-service-auth:denylist', listen)
  onTestFinished(() => {
    unsubscribe('express-service-auth:denylist', listen)
  })
  return heard
}
