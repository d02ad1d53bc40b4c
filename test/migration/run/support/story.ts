import fc from 'fast-check'
import { person } from './people.js'
import type { Blame, Fate } from './simulated-core.js'

export const SETTLE_SECONDS = 10

/** What happens around a migration. */
export interface Story {
  readonly users: number
  readonly batchUsers: number
  readonly fates: readonly Fate[]
  /** After how many appends or calls each process is killed; and whether the append was kept. */
  readonly kills: readonly { readonly after: number; readonly kept: boolean }[]
  /** When the hook imports which user. */
  readonly hook: readonly { readonly afterMs: number; readonly user: number }[]
  /** Whose e-mail address another account has. */
  readonly conflicts: readonly number[]
  /** The other accounts are made after the preflight. */
  readonly conflictsAreLate: boolean
  /** When another account takes whose e-mail address. */
  readonly taken: readonly { readonly afterMs: number; readonly user: number }[]
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

export const inTime: fc.Arbitrary<Fate> = fc.oneof(
  fc.constantFrom<Fate[]>('done', 'lost before', 'lost after', 'refused'),
  fc
    .integer({ min: 1, max: SETTLE_SECONDS * 1000 - 100 })
    .map((landsAfterMs) => ({ landsAfterMs })),
)

export const late: fc.Arbitrary<Fate> = fc.oneof(
  inTime,
  fc.integer({ min: 1, max: 90_000 }).map((landsAfterMs) => ({ landsAfterMs })),
)

export const storyWith = (fate: fc.Arbitrary<Fate>): fc.Arbitrary<Story> =>
  fc.record({
    users: fc.integer({ min: 1, max: 25 }),
    batchUsers: fc.integer({ min: 1, max: 9 }),
    fates: fc.array(fate, { maxLength: 12 }),
    kills: fc.array(fc.record({ after: fc.integer({ min: 1, max: 40 }), kept: fc.boolean() }), {
      maxLength: 8,
    }),
    hook: fc.array(
      fc.record({
        afterMs: fc.integer({ min: 0, max: 60_000 }),
        user: fc.integer({ min: 0, max: 24 }),
      }),
      { maxLength: 6 },
    ),
    conflicts: fc.uniqueArray(fc.integer({ min: 0, max: 24 }), { maxLength: 3 }),
    conflictsAreLate: fc.boolean(),
    taken: fc.array(
      fc.record({
        afterMs: fc.integer({ min: 0, max: 60_000 }),
        user: fc.integer({ min: 0, max: 24 }),
      }),
      { maxLength: 3 },
    ),
    poison: fc.uniqueArray(fc.integer({ min: 0, max: 24 }), { maxLength: 2 }),
    blames: fc.array(fc.constantFrom<Blame[]>('culprit', 'innocent', 'nobody', 'chunk'), {
      maxLength: 12,
    }),
    fixes: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    hookIsFirst: fc.boolean(),
    jobUsers: fc.integer({ min: 1, max: 10 }),
    jobEveryMs: fc.integer({ min: 500, max: 9000 }),
  })

/** Of somebody who has failed: whether the correction gives another address. */
const isMended = ({ fixes, poison }: Story, user: number): boolean =>
  !poison.includes(user) && fixes[user % fixes.length] === true

/** Whether anything keeps the user from getting an account with the record of the source. */
export const isObstructed = ({ conflicts, taken, poison }: Story, user: number): boolean =>
  conflicts.includes(user) || poison.includes(user) || taken.some((each) => each.user === user)

/** What a person writes of those who have failed or were held back. */
export const correctionsOf = (story: Story, failed: readonly string[]): object[] =>
  failed.map((id) => {
    const user = Number(id.slice('user-'.length))
    if (!isObstructed(story, user)) throw new Error(`${id} has failed, and is innocent`)
    if (!isMended(story, user)) return { leaveOut: id, reason: 'has an account of old' }
    return { replaces: id, user: fixed(id) }
  })

/** With the addresses of the corrections. */
export const mendedPeople = (story: Story): object[] =>
  story.conflicts
    .filter((user) => user < story.users && isMended(story, user))
    .map((user) => fixed(`user-${user}`))

function fixed(id: string): object {
  const [method] = person(id).loginMethods
  return person(id, { loginMethods: [{ ...method, email: `${id}@elsewhere.example` }] })
}
