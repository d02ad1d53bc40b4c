import type { LiveDenylist } from 'express-service-auth'

/** A live denylist in the memory of this process; several instances share one in Redis (`redisDenylist`). */
export function deniedCallers() {
  const callers = new Set<string>()
  const nothing: ReadonlySet<string> = new Set()
  const denylist: LiveDenylist = {
    lists: () => ({ callers, keys: nothing, tokenIds: nothing }),
    ready: async () => undefined,
    health: () => ({ state: 'fresh', entries: callers.size, version: 1 }),
    close: () => undefined,
  }
  return { callers, denylist }
}
