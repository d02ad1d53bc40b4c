import type { LiveDenylist, Store } from 'express-service-auth'
import { redisDenylist, redisStore } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import type { Calls } from '../ipc/calls.js'
import type { DeniedVersion } from '../ipc/denied-list.js'
import { parentDenylist } from '../ipc/parent-denylist.js'
import { type Lent, parentStore } from '../ipc/parent-store.js'
import type { Beginning } from '../messages.js'

/** What all receivers share, as one of them holds it. */
export interface SharedStore {
  readonly store: Store
  readonly denylist: LiveDenylist
  /** Takes the list of the parent, if it keeps one. */
  receive(denied: DeniedVersion): void
}

/** Redis, also while it is unreachable, or the parent process. */
export function openShared(
  { redisUrl, receiver }: Beginning,
  { calls, lent }: { readonly calls: Calls; readonly lent: Lent },
): SharedStore {
  if (redisUrl === undefined) {
    const denylist = parentDenylist()
    return { store: parentStore(calls, lent), denylist, receive: denylist.receive }
  }
  const redis = new Redis(redisUrl)
  // The store and the denylist report what fails; without a listener ioredis prints it, too.
  redis.on('error', () => undefined)
  // The same after it was killed, so that nobody waits for a receiver that is gone.
  const name = `control room ${process.ppid}: ${receiver}`
  const denylist = redisDenylist(redis, { name })
  return { store: redisStore(redis), denylist, receive: () => undefined }
}
