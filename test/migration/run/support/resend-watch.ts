import { CoreError } from '../../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../../src/migration/core/import-user.js'
import type { SimulatedCore } from './simulated-core.js'
import type { SimulatedTime } from './simulated-time.js'
import { SETTLE_SECONDS } from './story.js'

/** Finds who is sent again although a look-up before must have shown the account. */
export interface ResendWatch {
  /** As the core's. */
  readonly stageUsers: SimulatedCore['stageUsers']
  /** External ids. */
  readonly offences: readonly string[]
  /** A process begins. */
  begin(): void
}

export function watchResends(core: SimulatedCore, time: SimulatedTime): ResendWatch {
  const offences: string[] = []
  /** Of whoever was in a call: an account that was there by then must be seen before the next. */
  const mustBeSeen = new Map<string, number>()
  let processBegan = 0

  const sent = (users: readonly ImportUser[], until: number): void => {
    for (const { externalUserId = '' } of users) mustBeSeen.set(externalUserId, until)
  }

  return {
    offences,
    begin() {
      processBegan = time.elapsedMs()
    },
    async stageUsers(users, options) {
      for (const { externalUserId = '' } of users) {
        const until = mustBeSeen.get(externalUserId)
        const madeAt = core.accounts.get(externalUserId)?.madeAt
        if (until === undefined || madeAt === undefined) continue
        if (madeAt < until || madeAt <= processBegan) offences.push(externalUserId)
      }
      try {
        const staging = await core.stageUsers(users, options)
        sent(users, ANY_PROCESS)
        return staging
      } catch (error) {
        const isLost = error instanceof CoreError && error.outcome === 'unknown'
        if (isLost) sent(users, time.elapsedMs() + SETTLE_SECONDS * 1000)
        throw error
      }
    },
  }
}

/** Nothing must be seen but what was there when the process began that sends again. */
const ANY_PROCESS = 0
