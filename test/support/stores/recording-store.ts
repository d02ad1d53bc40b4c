import { memoryStore, type Store } from 'express-service-auth'

/** A memory store that counts what is asked of it. */
export function recordingStore(): { store: Store; asked: string[] } {
  const asked: string[] = []
  const memory = memoryStore()
  const store: Store = {
    consume(id, ttlMs) {
      asked.push('consume')
      return memory.consume(id, ttlMs)
    },
    reserve(request) {
      asked.push('reserve')
      return memory.reserve(request)
    },
    renew: (run) => memory.renew(run),
    settle: (run, ending) => memory.settle(run, ending),
    check: () => memory.check(),
    close: () => memory.close(),
    health: () => memory.health(),
    inspect: (record) => memory.inspect(record),
    resolve: (record, fence, as) => memory.resolve(record, fence, as),
  }
  return { store, asked }
}
