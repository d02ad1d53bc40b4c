import { type KeyListOptions, openKeyList } from './key-list.js'
import { cacheSeconds, isNewKeyDue, pickSigningKey } from './rotation.js'
import {
  isDynamic,
  makeDynamicKey,
  makeStaticKey,
  type PublicJwk,
  type SigningKey,
  toPublicJwk,
} from './signing-key.js'

/** A published key, without key material. */
export interface PublishedKey {
  readonly kid: string
  readonly kind: 'dynamic' | 'static'
  readonly createdMs: number
  /** Whether it signs now; one key of each kind does. */
  readonly isSigning: boolean
}

export interface KeyRing {
  signingKey(kind: 'dynamic' | 'static'): Promise<SigningKey>
  /** Returns a published key. */
  find(kid: string): SigningKey | undefined
  /** Dynamic keys, newest first, then static ones, then the keys of others. */
  keySet(): Promise<{ keys: PublicJwk[]; maxAgeSeconds: number }>
  /** Makes a dynamic key that signs from now on; the earlier keys stay published. */
  rotate(): Promise<string>
  /** Removes a key from use and from the set; returns whether it was there. */
  withdraw(kid: string): Promise<boolean>
  /** Its own keys in the set, newest first, then static ones. */
  published(): readonly PublishedKey[]
  /**
   * Adds keys of others to the set, for the life of the ring.
   * @throws {TypeError} if a key id is already in the set
   */
  publishAlso(keys: readonly PublicJwk[]): void
}

/** As in the core, a request that finds a key due makes it, not a timer. */
export async function openKeyRing(options: KeyListOptions): Promise<KeyRing> {
  const { schedule, clock } = options
  const list = await openKeyList(options)
  const ofOthers: PublicJwk[] = []
  const signing = () => pickSigningKey(list.dynamic(), schedule, clock())
  const published = () => [...list.dynamic(), ...list.static()]
  const isDue = () => isNewKeyDue(list.dynamic()[0], schedule, clock())

  async function addDynamicKey(signsAfterMs: number): Promise<string> {
    const [newest] = list.dynamic()
    // The id is the creation time: two keys of the same millisecond would share it.
    const createdMs = Math.max(clock(), (newest?.createdMs ?? 0) + 1)
    const key = await makeDynamicKey({ createdMs, signsFromMs: clock() + signsAfterMs })
    await list.add(key)
    return key.kid
  }

  async function keepUp(): Promise<void> {
    if (!isDue() && list.static().length > 0) return
    await list.change(async () => {
      if (isDue()) await addDynamicKey(schedule.overlapMs)
      if (list.static().length === 0) await list.add(await makeStaticKey(clock()))
    })
  }

  await keepUp()
  return {
    async signingKey(kind) {
      await keepUp()
      const key = kind === 'static' ? list.static()[0] : signing()
      if (key === undefined) throw new Error(`no ${kind} key to sign with`)
      return key
    },
    find: (kid) => published().find((key) => key.kid === kid),
    async keySet() {
      await keepUp()
      const key = signing()
      const maxAgeSeconds = key === undefined ? 1 : cacheSeconds(key, schedule, clock())
      return { keys: [...published().map(toPublicJwk), ...ofOthers], maxAgeSeconds }
    },
    rotate: () => list.change(() => addDynamicKey(0)),
    withdraw: (kid) => list.change(() => list.remove(kid)),
    published() {
      const signs = [signing(), list.static()[0]]
      return published().map((key) => ({
        kid: key.kid,
        kind: isDynamic(key) ? 'dynamic' : 'static',
        createdMs: key.createdMs,
        isSigning: signs.includes(key),
      }))
    },
    publishAlso(keys) {
      const taken = new Set([...published(), ...ofOthers].map(({ kid }) => kid))
      // Receivers ignore both of two keys with the same id.
      const repeated = keys.find(({ kid }) => taken.has(kid))
      if (repeated) throw new TypeError(`the key ${repeated.kid} is published already`)
      ofOthers.push(...keys)
    },
  }
}
