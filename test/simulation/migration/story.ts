import type { Blame, Fate } from '../../migration/run/support/simulated-core.js'
import { Random } from '../clock.js'

/** How long a core may take for a call without a reply. */
export const SETTLE_SECONDS = 10

/** What happens around a migration. Users are numbers. */
export interface MigrationStory {
  readonly seed: number
  readonly users: number
  readonly batchUsers: number
  /** What becomes of the first calls that write. */
  readonly fates: readonly Fate[]
  /** Whether the core ends each call within `SETTLE_SECONDS`. */
  readonly isInTime: boolean
  /** After how many calls and appends each process is killed. */
  readonly kills: readonly number[]
  /** When the hook imports which user. */
  readonly hook: readonly UserAt[]
  /** Whose e-mail address another account has. */
  readonly conflicts: readonly number[]
  /** The other accounts are made after the preflight. */
  readonly conflictsAreLate: boolean
  /** When another account takes whose e-mail address. */
  readonly taken: readonly UserAt[]
  /** Whom the core cannot import, without saying why. */
  readonly poison: readonly number[]
  /** Whom the job blames for each chunk that it cannot import. */
  readonly blames: readonly Blame[]
  /** Of those who fail: whether they get another address, or are left out. */
  readonly fixes: readonly boolean[]
  /** The hook imports whoever gets another address before the correction does. */
  readonly hookIsFirst: boolean
  readonly jobUsers: number
  readonly jobEveryMs: number
}

interface UserAt {
  readonly afterMs: number
  readonly user: number
}

export const nameOf = (user: number): string => `user-${user}`

export function drawMigration(seed: number): MigrationStory {
  const random = new Random(seed)
  /** Somebody has to be corrected while calls land late. */
  const isNarrow = random.chance(0.5)
  const isInTime = random.chance(isNarrow ? 0.1 : 0.4)
  const longestMs = isInTime ? SETTLE_SECONDS * 1000 - 100 : 90_000
  const some = <T>(most: number, draw: () => T): T[] =>
    Array.from({ length: random.below(most + 1) }, draw)
  const users = 1 + random.below(isNarrow ? 3 : 25)
  const user = (): number => random.below(users)
  const userAt = (): UserAt => ({ afterMs: random.below(60_000), user: user() })
  const fate = (): Fate =>
    random.chance(isNarrow ? 0.8 : 0.4)
      ? { landsAfterMs: 1 + random.below(longestMs) }
      : random.pick(['done', 'lost before', 'lost after', 'refused'])
  return {
    seed,
    users,
    batchUsers: 1 + random.below(9),
    fates: some(12, fate),
    isInTime,
    kills: some(8, () => 1 + random.below(40)),
    hook: isNarrow ? some(1, userAt) : some(6, userAt),
    conflicts: isNarrow ? [0] : [...new Set(some(3, user))],
    conflictsAreLate: random.chance(isNarrow ? 0.9 : 0.5),
    taken: isNarrow ? [] : some(3, userAt),
    poison: isNarrow ? [] : [...new Set(some(2, user))],
    blames: some(12, () => random.pick(['culprit', 'innocent', 'nobody', 'chunk'])),
    fixes: Array.from({ length: 3 }, () => random.chance(0.5)),
    hookIsFirst: random.chance(0.5),
    jobUsers: 1 + random.below(10),
    jobEveryMs: 500 + random.below(8500),
  }
}

/** Of somebody who has failed: whether the correction gives another address. */
export const isAddressCorrected = ({ fixes, poison }: MigrationStory, user: number): boolean =>
  !poison.includes(user) && fixes[user % fixes.length] === true

/** Whether anything keeps the user from getting an account with the record of the source. */
export const isObstructed = ({ conflicts, taken, poison }: MigrationStory, user: number): boolean =>
  conflicts.includes(user) || poison.includes(user) || taken.some((each) => each.user === user)
