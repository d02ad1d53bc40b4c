import type { Store } from 'express-service-auth'

const LOOK_EVERY_MS = 1000

/** Calls the store once a second, so that its health says how it is, and reports when that changes. */
export function watchStore(store: Store, onChange: () => void): { close(): void } {
  let { state } = store.health()
  const timer = setInterval(async () => {
    // No record has this name.
    await store.inspect('control room').catch(() => undefined)
    const now = store.health().state
    if (now === state) return
    state = now
    onChange()
  }, LOOK_EVERY_MS)
  timer.unref()
  return { close: () => clearInterval(timer) }
}
