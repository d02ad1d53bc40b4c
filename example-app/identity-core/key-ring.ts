import { type KeyListOptions, openKeyList } from './key-list.js'
import { cacheSeconds, isNewKeyDue, pickSigningKey } from './rotation.js'
import {
  makeDynamicKey,
  makeStaticKey,
  type PublicJwk,
  type SigningKey,
  toPublicJwk,
} from './signing-key.js'

export interface KeyRing {
  signingKey(kind: 'dynamic' | 'static'): Promise<SigningKey>
  /** A published key. */
  find(kid: string): SigningKey | undefined
  /** Dynamic keys, newest first, then static ones. */
  keySet(): Promise<{ keys: PublicJwk[]; maxAgeSeconds: number }>
  /** Makes a dynamic key that signs from now on; those before it stay published. */
  rotate(): Promise<string>
  /** Takes a key out of use and out of the set; tells whether it was there. */
  withdraw(kid: string): Promise<boolean>
}

/** As in the core, keys are made when a request finds them due, not by a timer. */
export async function openKeyRing(options: KeyListOptions): Promise<KeyRing> {
  const { schedule, clock } = options
  const list = await openKeyList(options)
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
      return { keys: published().map(toPublicJwk), maxAgeSeconds }
    },
    rotate: () => list.change(() => addDynamicKey(0)),
    withdraw: (kid) => list.change(() => list.remove(kid)),
  }
}
