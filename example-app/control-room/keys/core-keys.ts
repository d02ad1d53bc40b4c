import * as z from 'zod'
import type { IdentityCore } from '../../identity-core/identity-core.js'
import { readInput } from '../input/read-input.js'
import { ActionError } from '../ports.js'
import type { CoreKey, CoreState } from '../protocol.js'

/** The core's keys and its key set, as a visitor sees and changes them. Inputs come unchecked. */
export interface CoreKeys {
  state(): CoreState
  rotate(): Promise<{ kid: string }>
  remove(input: unknown): Promise<object>
  slow(input: unknown): object
  takeDown(input: unknown): object
}

type Core = Pick<
  IdentityCore,
  'url' | 'keys' | 'rotate' | 'withdraw' | 'setDown' | 'setSlow' | 'keySetRequests'
>

export interface CoreKeysOptions {
  readonly core: Core
  /** The ids of the keys that the catalogue of hostile tokens is signed with. */
  readonly catalogueKids: readonly string[]
  readonly clock?: () => number
}

/** What receivers take; they refuse a larger set as a whole. */
const MAX_KEYS = 32
const MAX_DELAY_MS = 60_000

const removal = z.strictObject({ kid: z.string() })
const slowness = z.strictObject({ milliseconds: z.number().min(0).max(MAX_DELAY_MS) })
const outage = z.strictObject({ isDown: z.boolean() })

export function openCoreKeys({ core, catalogueKids, clock = Date.now }: CoreKeysOptions): CoreKeys {
  const catalogueSince = clock()
  let isDown = false
  let slowByMs = 0
  const keys = (): CoreKey[] => [
    ...core.keys().map(({ createdMs, ...key }) => ({ ...key, createdAt: createdMs })),
    ...catalogueKids.map((kid) => catalogueKey(kid, catalogueSince)),
  ]
  return {
    state: () => ({
      url: core.url,
      isDown,
      slowByMs,
      keySetRequests: core.keySetRequests(),
      keys: keys(),
    }),
    async rotate() {
      if (keys().length >= MAX_KEYS) {
        throw new ActionError(`Receivers take ${MAX_KEYS} keys at most: remove one first`)
      }
      return { kid: await core.rotate() }
    },
    async remove(input) {
      const { kid } = readInput(removal, input)
      if (catalogueKids.includes(kid)) {
        throw new ActionError('This key signs the hostile tokens: it stays')
      }
      if (!(await core.withdraw(kid))) throw new ActionError(`The core has no key ${kid}`)
      return {}
    },
    slow(input) {
      slowByMs = readInput(slowness, input).milliseconds
      core.setSlow(slowByMs)
      return {}
    },
    takeDown(input) {
      isDown = readInput(outage, input).isDown
      core.setDown(isDown)
      return {}
    },
  }
}

const catalogueKey = (kid: string, createdAt: number): CoreKey => ({
  kid,
  kind: 'catalogue',
  createdAt,
  isSigning: false,
})
