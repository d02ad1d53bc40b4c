import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { live } from './support/live.js'
import type { Fate } from './support/simulated-core.js'
import { inTime, isObstructed, late, type Story, storyWith } from './support/story.js'

/** Some seconds' worth; `MODEL_RUNS` makes a longer search. */
const RUNS = Number(process.env['MODEL_RUNS'] ?? 60)

/** The hook makes the account of the last user of a lost call while the run waits for its end. */
const FOUND_LAST: Story = {
  users: 5,
  batchUsers: 5,
  fates: ['lost before'],
  kills: [],
  hook: [{ afterMs: 5000, user: 4 }],
  conflicts: [],
  conflictsAreLate: true,
  taken: [],
  poison: [],
  blames: [],
  fixes: [true],
  hookIsFirst: false,
  jobUsers: 5,
  jobEveryMs: 500,
}

/** The hook makes the account of somebody who has failed, and then comes the correction. */
const FOUND_CORRECTED: Story = {
  ...FOUND_LAST,
  fates: [],
  hook: [],
  conflicts: [1],
  fixes: [true],
  hookIsFirst: true,
}

/** A deletion lands long after the account was found, and a person has to look again and again. */
const DELETED_LATE: Story = {
  ...FOUND_LAST,
  users: 1,
  batchUsers: 1,
  fates: [{ landsAfterMs: 51_107 }, { landsAfterMs: 1 }, { landsAfterMs: 86_108 }],
  kills: [
    { after: 1, kept: false },
    { after: 27, kept: true },
  ],
  hook: [],
}

/** The first call lands while its user is corrected: the old row is found, and fails once more. */
const LANDS_IN_CORRECTION: Story = {
  ...FOUND_CORRECTED,
  users: 1,
  batchUsers: 1,
  fates: [{ landsAfterMs: 14_106 }],
  conflicts: [0],
  hookIsFirst: false,
}

const landing = (landsAfterMs: number): Fate => ({ landsAfterMs })

/** A call lands while a correction deletes a row, its process is killed, and nobody is sent again. */
const LANDS_WHILE_DELETING: Story = {
  ...FOUND_LAST,
  users: 10,
  fates: [8, 30_400, 1].map(landing),
  kills: [22, 5, 21, 9, 8, 27].map((after) => ({ after, kept: false })),
  hook: [{ afterMs: 0, user: 0 }],
  conflicts: [1],
  fixes: [false],
  jobUsers: 4,
  jobEveryMs: 6844,
}

/** A row of an old call fails after the correction, which lands later still, and so does another. */
const FAILS_BEFORE_THE_CORRECTION: Story = {
  ...FOUND_CORRECTED,
  users: 2,
  batchUsers: 2,
  fates: [...[36_232, 38_225, 1, 10_008, 1, 30_088].map(landing), 'lost before', landing(8)],
  conflicts: [0],
  hookIsFirst: false,
  jobUsers: 2,
  jobEveryMs: 3159,
}

/** A call lands when one of its users is corrected in a call with somebody else, and that is lost. */
const LANDS_BESIDE_ANOTHER: Story = {
  ...FOUND_CORRECTED,
  users: 7,
  batchUsers: 3,
  fates: ['done', landing(14_239), 'done', 'done', 'done', 'lost before'],
  conflicts: [3, 0],
  fixes: [true, true],
  hookIsFirst: false,
  jobUsers: 1,
}

/** The hook makes an account before somebody else could take its login. */
const HOOK_BEFORE_CONFLICT: Story = {
  ...FOUND_LAST,
  fates: [],
  hook: [{ afterMs: 0, user: 4 }],
  conflicts: [4],
  fixes: [false],
}

type Lived = Awaited<ReturnType<typeof live>>

function judge({ core, report, reports, resent, leftOut }: Lived, story: Story): void {
  expect(resent).toEqual([])
  expect(report.counts).toMatchObject({
    reconciled: story.users - leftOut.size,
    left_out: leftOut.size,
  })
  // Where the hook makes the user's account first, nobody else can take the login later.
  const isFirst = (user: number): boolean =>
    story.conflictsAreLate && story.hook.some((each) => each.user === user)
  const conflicts = story.conflicts.filter((user) => user < story.users && !isFirst(user))
  if (conflicts.length > 0) expect(reports.map(({ state }) => state)).toContain('to_correct')
  for (let user = 0; user < story.users; user++) {
    expect(core.accounts.has(`user-${user}`)).toBe(!leftOut.has(`user-${user}`))
  }
  expect(core.rows_).toEqual([])
}

describe('a run whose core loses replies, whose hook is at work and that is killed', () => {
  it('stages nobody twice while the core ends its calls in time', async () => {
    await fc.assert(
      fc.asyncProperty(storyWith(inTime), async (story) => {
        const lived = await live(story)
        judge(lived, story)
        expect(lived.reports.map(({ state }) => state)).not.toContain('to_reconcile')
        for (const [id, times] of lived.core.staged) {
          const isAgain = isObstructed(story, Number(id.slice('user-'.length)))
          expect(times).toBeLessThanOrEqual(isAgain ? 2 : 1)
        }
      }),
      { numRuns: RUNS, examples: [[FOUND_LAST], [FOUND_CORRECTED], [HOOK_BEFORE_CONFLICT]] },
    )
  })

  it('brings each identity to one account, however late its calls end', async () => {
    await fc.assert(
      fc.asyncProperty(storyWith(late), async (story) => judge(await live(story), story)),
      {
        numRuns: RUNS,
        examples: [
          [DELETED_LATE],
          [LANDS_IN_CORRECTION],
          [LANDS_WHILE_DELETING],
          [FAILS_BEFORE_THE_CORRECTION],
          [LANDS_BESIDE_ANOTHER],
        ],
      },
    )
  })
})
