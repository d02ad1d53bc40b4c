import { channel } from 'node:diagnostics_channel'
import {
  type DeniedLists,
  type DenylistEntry,
  type DenylistEvent,
  type DenylistHealth,
  type LiveDenylist,
  ServiceAuthError,
} from 'express-service-auth'
import type { DeniedVersion } from './denied-list.js'

/** A live denylist whose entries come from the parent, with a confirmation while they hold. */
export interface ParentDenylist extends LiveDenylist {
  receive(denied: DeniedVersion): void
}

/** Six confirmations in a row are missing by then. */
const STALE_AFTER_MS = 1500
const EXPIRED_AFTER_MS = 60_000
const READY_WITHIN_MS = 1500

/** The channel on which a denylist of the package publishes its changes. */
const channelOfPackage = channel('express-service-auth:denylist')

export function parentDenylist(): ParentDenylist {
  let byIssuer: ReadonlyMap<string, DeniedLists> = new Map()
  let names: ReadonlySet<string> = new Set()
  let version = 0
  let confirmedAt: number | undefined
  let isClosed = false
  const waiting = new Set<() => void>()

  const state = (): DenylistHealth['state'] => {
    if (confirmedAt === undefined) return 'cold'
    const ageMs = performance.now() - confirmedAt
    if (ageMs > EXPIRED_AFTER_MS) return 'expired'
    return ageMs > STALE_AFTER_MS ? 'stale' : 'fresh'
  }
  const isKnown = () => state() === 'fresh' || state() === 'stale'

  function take(entries: readonly DenylistEntry[], next: number): void {
    const nextNames = new Set(entries.map((entry) => JSON.stringify(entry)))
    const added = [...nextNames].filter((name) => !names.has(name)).length
    const removed = [...names].filter((name) => !nextNames.has(name)).length
    const event: DenylistEvent = { type: 'changed', version: next, added, removed }
    byIssuer = listsOf(entries)
    names = nextNames
    if (next === version) return
    version = next
    channelOfPackage.publish(event)
  }

  /** Resolves with the next message of the parent, or when the time is over. */
  async function nextUpdate(withinMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      waiting.add(resolve)
      timer = setTimeout(resolve, withinMs)
    })
    clearTimeout(timer)
  }

  return {
    receive({ version: next, entries }) {
      if (isClosed) return
      confirmedAt = performance.now()
      if (entries !== undefined) take(entries, next)
      for (const resolve of waiting) resolve()
      waiting.clear()
    },
    lists: (issuer) => (isKnown() ? (byIssuer.get(issuer) ?? NOTHING_DENIED) : undefined),
    async ready() {
      const deadline = performance.now() + READY_WITHIN_MS
      while (!isKnown()) {
        const leftMs = deadline - performance.now()
        if (isClosed || leftMs <= 0) {
          throw new ServiceAuthError('unavailable', 'the parent has not sent the denylist')
        }
        await nextUpdate(leftMs)
      }
    },
    health: () => ({
      state: state(),
      entries: names.size,
      version,
      ...(confirmedAt !== undefined && { ageSeconds: (performance.now() - confirmedAt) / 1000 }),
      ...(isClosed && { lastError: 'closed' as const }),
    }),
    close() {
      isClosed = true
      for (const resolve of waiting) resolve()
    },
  }
}

const NOTHING_DENIED: DeniedLists = {
  callers: new Set(),
  keys: new Set(),
  tokenIds: new Set(),
}

const SETS = { caller: 'callers', key: 'keys', token: 'tokenIds' } as const

function listsOf(entries: readonly DenylistEntry[]): ReadonlyMap<string, DeniedLists> {
  const lists = new Map<string, { -readonly [Name in keyof DeniedLists]: DeniedLists[Name] }>()
  for (const { issuer, kind, value } of entries) {
    const of = lists.get(issuer) ?? { ...NOTHING_DENIED }
    lists.set(issuer, of)
    if (kind === 'issued-before') of.issuedBefore = Number(value)
    else of[SETS[kind]] = new Set([...of[SETS[kind]], String(value)])
  }
  return lists
}
