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

/** A key in the published set, as people see it. */
export interface PublishedKey {
  readonly kid: string
  readonly kind: 'dynamic' | 'static'
  readonly createdMs: number
  /** Whether it signs now; there is one of each kind. */
  readonly isSigning: boolean
}

export interface KeyRing {
  signingKey(kind: 'dynamic' | 'static'): Promise<SigningKey>
  /** A published key. */
  find(kid: string): SigningKey | undefined
  /** Dynamic keys, newest first, then static ones, then those of others. */
  keySet(): Promise<{ keys: PublicJwk[]; maxAgeSeconds: number }>
  /** Makes a dynamic key that signs from now on; those before it stay published. */
  rotate(): Promise<string>
  /** Takes a key out of use and out of the set; tells whether it was there. */
  withdraw(kid: string): Promise<boolean>
  /** Its own keys that are in the set, newest first, then static ones. */
  published(): readonly PublishedKey[]
  /**
   * Puts keys of others into the set, for as long as the ring lives.
   * @throws {TypeError} when a key id is in the set already
   */
  publishAlso(keys: readonly PublicJwk[]): void
}

/** As in the core, keys are made when a request finds them due, not by a timer. */
export async function openKeyRing(options: KeyListOptions): Promise<KeyRing> {
  const { schedule, clock } = options
  const list = await openKeyList(options)
  const ofOthers: PublicJwk[] = []
  const signing = () => pickSigningKey(list.dynamic(), schedule, clock())
  const published = () => [...list.dynamic(), ...list.static()]
  const isDue = () => isNewKeyDue(list.dynamic()[0], schedule, clock())

  async function addDynamicKey(signsAfterMs: number): Promise<string> {
    const [newest] = list.dynamic()
    // The id is the time of making: two keys of one millisecond would share it.
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
      // Of two keys with one id, receivers take neither.
      const repeated = keys.find(({ kid }) => taken.has(kid))
      if (repeated) throw new TypeError(`the key ${repeated.kid} is published already`)
      ofOthers.push(...keys)
    },
  }
}
