import type { DenylistHealth, LiveDenylist } from 'express-service-auth'

export type Denied = 'keys' | 'callers' | 'tokenIds'

const ANY_ISSUER = ''

const noLists = () => ({
  keys: new Set<string>(),
  callers: new Set<string>(),
  tokenIds: new Set<string>(),
  issuedBefore: undefined as number | undefined,
})

/** A live denylist that a test changes. It is a class, because users may write theirs as a class. */
export class ManualDenylist implements LiveDenylist {
  readonly #lists = new Map<string, ReturnType<typeof noLists>>()
  /** The arguments of `lists`, in order. */
  readonly asked: string[] = []
  isKnown = true
  closed = 0
  /** What `ready()` resolves or rejects with. */
  readiness: () => Promise<void> = async () => {}

  /** The cut-off of all issuers. */
  get issuedBefore(): number | undefined {
    return this.#of(ANY_ISSUER).issuedBefore
  }

  set issuedBefore(second: number | undefined) {
    this.cutOff(second)
  }

  cutOff(second: number | undefined, issuer = ANY_ISSUER): void {
    this.#of(issuer).issuedBefore = second
  }

  deny(kind: Denied, value: string, issuer = ANY_ISSUER): void {
    this.#of(issuer)[kind].add(value)
  }

  allow(kind: Denied, value: string, issuer = ANY_ISSUER): void {
    this.#of(issuer)[kind].delete(value)
  }

  lists(issuer: string): ReturnType<LiveDenylist['lists']> {
    this.asked.push(issuer)
    if (!this.isKnown) return undefined
    const [all, ofIssuer] = [this.#of(ANY_ISSUER), this.#of(issuer)]
    const issuedBefore = ofIssuer.issuedBefore ?? all.issuedBefore
    return {
      keys: new Set([...all.keys, ...ofIssuer.keys]),
      callers: new Set([...all.callers, ...ofIssuer.callers]),
      tokenIds: new Set([...all.tokenIds, ...ofIssuer.tokenIds]),
      ...(issuedBefore !== undefined && { issuedBefore }),
    }
  }

  #of(issuer: string): ReturnType<typeof noLists> {
    const lists = this.#lists.get(issuer) ?? noLists()
    this.#lists.set(issuer, lists)
    return lists
  }

  ready(): Promise<void> {
    return this.readiness()
  }

  health(): DenylistHealth {
    let entries = 0
    for (const { keys, callers, tokenIds } of this.#lists.values()) {
      entries += keys.size + callers.size + tokenIds.size
    }
    return { state: this.isKnown ? 'fresh' : 'cold', entries, version: 1 }
  }

  close(): void {
    this.closed += 1
  }
}
