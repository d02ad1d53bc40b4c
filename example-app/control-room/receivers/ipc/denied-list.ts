import type { DenylistEntry, DenylistTarget } from 'express-service-auth'

/** What is denied, as it is sent to receivers. */
export interface DeniedVersion {
  readonly version: number
  /** Absent where only the version is confirmed. */
  readonly entries?: readonly DenylistEntry[]
}

/** The one list of a room without Redis; receivers get each version, and a confirmation while it holds. */
export interface DeniedList {
  /** Returns the entry as it is now in force. @throws TypeError when the list is full */
  deny(entry: DenylistEntry): DenylistEntry
  allow(target: DenylistTarget): void
  entries(): readonly DenylistEntry[]
  version(): number
  /** Calls the listener at once and with each change; returns a function that ends it. */
  subscribe(listener: (denied: DeniedVersion) => void): () => void
  close(): void
}

const CONFIRM_MS = 250
/** Receivers get the whole list with each version. */
const MAX_ENTRIES = 1000

export function createDeniedList(): DeniedList {
  const denied = new Map<string, DenylistEntry>()
  const listeners = new Set<(update: DeniedVersion) => void>()
  let version = 0

  function changed(): void {
    version += 1
    notify({ version, entries: [...denied.values()] })
  }
  function notify(update: DeniedVersion): void {
    for (const listener of listeners) listener(update)
  }
  function confirm(): void {
    const now = Date.now() / 1000
    const ended = [...denied].filter(([, { until }]) => until !== null && until <= now)
    for (const [name] of ended) denied.delete(name)
    if (ended.length > 0) changed()
    else notify({ version })
  }
  const timer = setInterval(confirm, CONFIRM_MS)
  timer.unref()

  return {
    deny(entry) {
      const name = nameOf(entry)
      if (!denied.has(name) && denied.size >= MAX_ENTRIES) {
        throw new TypeError(`denylist entry: the list is full, it has ${MAX_ENTRIES} entries`)
      }
      const latest = latestOf(entry, denied.get(name))
      denied.set(name, latest)
      changed()
      return latest
    },
    allow(target) {
      if (denied.delete(nameOf(target))) changed()
    },
    entries: () => [...denied.values()],
    version: () => version,
    subscribe(listener) {
      listeners.add(listener)
      listener({ version, entries: [...denied.values()] })
      return () => listeners.delete(listener)
    },
    close() {
      clearInterval(timer)
      listeners.clear()
    },
  }
}

/** There is one cut-off for each issuer. */
const nameOf = (target: DenylistTarget | DenylistEntry): string =>
  JSON.stringify(
    target.kind === 'issued-before'
      ? [target.issuer, target.kind]
      : [target.issuer, target.kind, target.value],
  )

/** Denied twice, the later end and the later cut-off count. */
function latestOf(entry: DenylistEntry, earlier: DenylistEntry | undefined): DenylistEntry {
  if (earlier === undefined) return entry
  const ends = [entry.until, earlier.until]
  const until = ends.includes(null) ? null : Math.max(...ends.map(Number))
  const isCutOff = entry.kind === 'issued-before'
  const value = isCutOff ? Math.max(Number(entry.value), Number(earlier.value)) : entry.value
  return { ...entry, value, until }
}
