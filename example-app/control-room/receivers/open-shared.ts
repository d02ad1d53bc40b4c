import type { DenylistEntry, DenylistTarget, Store } from 'express-service-auth'
import type { RedisDenylist } from 'express-service-auth/redis'
import { openStore } from '../../orders/open-store.js'
import type { Calls, Handlers } from './ipc/calls.js'
import { createDeniedList, type DeniedVersion } from './ipc/denied-list.js'
import { storeHandlers } from './ipc/parent-store.js'

/** What is denied, as an operator changes it. */
export interface Containment {
  /** Resolves with the entry as it is now in force. */
  deny(entry: DenylistEntry): Promise<{ readonly entry: DenylistEntry }>
  allow(target: DenylistTarget): Promise<unknown>
  entries(): Promise<readonly DenylistEntry[]>
  /** The version, as far as it is known here. */
  version(): number
}

/** What all receivers share, as the room holds it. */
export interface Shared {
  readonly name: string
  readonly store: Store
  readonly containment: Containment
  /** What receivers call, where the room keeps the records. */
  handlers(calls: () => Calls): Handlers
  /** Sends a receiver what is denied, if the room keeps the list. */
  watchDenied(listener: (denied: DeniedVersion) => void): () => void
  close(): void
}

/**
 * Milliseconds. A person waits for the answer, and the room's process does much else: the default of 250 ms
 * is too short on a busy machine.
 */
const ANSWER_WITHIN_MS = 2000

/**
 * Redis, or the memory of this process.
 * @throws {StartError} as `openStore`
 */
export async function openShared(redisUrl: string | undefined): Promise<Shared> {
  const { store, denylist, name, close } = await openStore(redisUrl, {
    timeoutMs: ANSWER_WITHIN_MS,
  })
  const shared = { name, store }
  return denylist ? inRedis(shared, denylist, close) : inMemory(shared)
}

function inRedis(
  shared: Pick<Shared, 'name' | 'store'>,
  denylist: RedisDenylist,
  close: () => void,
): Shared {
  // Polls from now on, and goes on where it fails.
  denylist.ready().catch(() => undefined)
  return {
    ...shared,
    containment: { ...denylist, version: () => denylist.health().version },
    handlers: () => ({}),
    watchDenied: () => () => undefined,
    close,
  }
}

function inMemory({ name, store }: Pick<Shared, 'name' | 'store'>): Shared {
  const list = createDeniedList()
  return {
    name,
    store,
    containment: {
      deny: async (entry) => ({ entry: list.deny(entry) }),
      allow: async (target) => list.allow(target),
      entries: async () => list.entries(),
      version: list.version,
    },
    handlers: (calls) => storeHandlers(store, calls),
    watchDenied: list.subscribe,
    close() {
      list.close()
      store.close()
    },
  }
}
