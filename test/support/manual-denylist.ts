import type { DenylistHealth, LiveDenylist } from 'express-service-auth'

export type Denied = 'keys' | 'callers' | 'tokenIds'

/** A live denylist that a test changes by hand, as a user might write one: a class. */
export class ManualDenylist implements LiveDenylist {
  readonly #denied = {
    keys: new Set<string>(),
    callers: new Set<string>(),
    tokenIds: new Set<string>(),
  }
  /** The issuers that it was asked for, in order. */
  readonly asked: string[] = []
  issuedBefore: number | undefined
  isKnown = true
  closed = 0
  /** What `ready()` resolves or rejects with. */
  readiness: () => Promise<void> = async () => {}

  deny(kind: Denied, value: string): void {
    this.#denied[kind].add(value)
  }

  allow(kind: Denied, value: string): void {
    this.#denied[kind].delete(value)
  }

  lists(issuer: string): ReturnType<LiveDenylist['lists']> {
    this.asked.push(issuer)
    if (!this.isKnown) return undefined
    const { issuedBefore } = this
    return { ...this.#denied, ...(issuedBefore !== undefined && { issuedBefore }) }
  }

  ready(): Promise<void> {
    return this.readiness()
  }

  health(): DenylistHealth {
    const { keys, callers, tokenIds } = this.#denied
    const entries = keys.size + callers.size + tokenIds.size
    return { state: this.isKnown ? 'fresh' : 'cold', entries, version: 1 }
  }

  close(): void {
    this.closed += 1
  }
}
