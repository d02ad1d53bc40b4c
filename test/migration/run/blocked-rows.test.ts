import { describe, expect, it } from 'vitest'
import type { DirectImport } from '../../../src/migration/core/core-client.js'
import { CoreError } from '../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { person, sourceOf } from './support/people.js'
import { listOf, refusal, scene } from './support/scene.js'
import type { Blame, SimulatedCore } from './support/simulated-core.js'
import type { SimulatedTime } from './support/simulated-time.js'

const FIVE_MINUTES = 300_000

const taker = (name: string): ImportUser =>
  ({ ...person(name), externalUserId: `taker-of-${name}` }) as ImportUser

/** As soon as all are staged and before the job runs. */
const whileItWaits = (time: SimulatedTime, happens: () => void): void => time.at(60_000, happens)

/** A run into a core whose job imports five users at once. */
const sceneOfChunks = (
  circumstances: Parameters<typeof scene>[2] = {},
  overrides: Parameters<typeof scene>[0] = {},
  options: Parameters<typeof scene>[1] = {},
) => scene(overrides, options, { jobUsers: 5, ...circumstances })

const idOf = (simulated: SimulatedCore, externalUserId: string): string | undefined =>
  simulated.accounts.get(externalUserId)?.coreId

describe('a row that keeps its chunk from being imported', () => {
  it.each<Blame>(['culprit', 'innocent', 'nobody', 'chunk'])(
    'is withdrawn when another account has taken its login, where the job blames %s',
    async (blame) => {
      const { open, simulated, time } = sceneOfChunks({
        jobEveryMs: FIVE_MINUTES,
        blame: () => blame,
      })
      whileItWaits(time, () => simulated.importNow(taker('user-3')))
      const migration = await open()
      const report = await migration.run()
      expect(report).toMatchObject({ state: 'to_correct', counts: { failed: 1, reconciled: 9 } })
      const [failed] = (await listOf(migration.identities())).filter(
        ({ state }) => state === 'failed',
      )
      expect(failed).toMatchObject({
        externalUserId: 'user-3',
        line: 4,
        code: 'E003',
        heldBy: idOf(simulated, 'taker-of-user-3'),
      })
      expect([...simulated.staged.values()].every((times) => times === 1)).toBe(true)
      const left = { leaveOut: 'user-3', reason: 'another person' }
      expect(await migration.correct(sourceOf([left], 'corrections'))).toMatchObject({
        state: 'complete',
      })
      expect(simulated.rows_).toEqual([])
    },
  )

  it('is withdrawn when the hook has made its account', async () => {
    const { open, simulated, time } = sceneOfChunks({
      jobEveryMs: FIVE_MINUTES,
      blame: () => 'nobody',
    })
    whileItWaits(time, () => simulated.importNow(person('user-3') as ImportUser))
    expect(await (await open()).run()).toMatchObject({
      state: 'complete',
      counts: { reconciled: 10 },
    })
    expect(simulated.rows_).toEqual([])
  })

  it('takes no more runs of the job when logins of 40 users are taken while the run waits', async () => {
    const { open, simulated, time } = sceneOfChunks({
      ...{ users: 200, jobEveryMs: FIVE_MINUTES, jobUsers: 25 },
      blame: () => 'innocent',
    })
    whileItWaits(time, () => {
      for (let user = 0; user < 40; user++) simulated.importNow(taker(`user-${user * 5}`))
    })
    expect(await (await open()).run()).toMatchObject({
      state: 'to_correct',
      counts: { failed: 40, reconciled: 160 },
    })
    expect(simulated.jobRuns).toBe(2)
  })

  it('is looked for once after rows have failed, however many polls follow', async () => {
    let lookUps = 0
    const { open, simulated, time } = scene(
      {
        coreIdOf: (id) => {
          lookUps += 1
          return simulated.coreIdOf(id)
        },
      },
      {},
      { users: 100, jobEveryMs: FIVE_MINUTES, jobUsers: 50, blame: () => 'innocent' },
    )
    whileItWaits(time, () => {
      simulated.importNow(taker('user-3'))
      lookUps = 0
    })
    let untilNextRun = 0
    time.at(2 * FIVE_MINUTES - 1, () => {
      untilNextRun = lookUps
    })
    await (await open()).run()
    expect(untilNextRun).toBeGreaterThanOrEqual(49)
    expect(untilNextRun).toBeLessThan(60)
  })
})

describe('a row whose login is taken after the waiting rows were looked up', () => {
  it('is found before the run has stalled', async () => {
    const { open, simulated, time } = sceneOfChunks({
      jobEveryMs: FIVE_MINUTES,
      blame: () => 'nobody',
    })
    let isAway = true
    const usersWith = simulated.usersWith
    simulated.usersWith = (tenant, info) => (isAway ? Promise.resolve([]) : usersWith(tenant, info))
    whileItWaits(time, () => simulated.importNow(taker('user-3')))
    time.at(2 * FIVE_MINUTES, () => {
      isAway = false
    })
    expect((await (await open()).run()).counts).toMatchObject({ failed: 1, reconciled: 9 })
    expect(simulated.jobRuns).toBeLessThanOrEqual(4)
  })
})

describe('users whom the core has failed for another', () => {
  it('are told with `chunk_failed` where the core refuses them alone', async () => {
    const { open, simulated } = sceneOfChunks(
      { blame: () => 'chunk' },
      { importUser: async () => ({ outcome: 'rejected', errors: ['a text'] }) },
    )
    simulated.importLater(taker('user-3'))
    const migration = await open()
    expect(await migration.run()).toMatchObject({ counts: { failed: 5, reconciled: 5 } })
    const failed = (await listOf(migration.identities())).filter(({ state }) => state === 'failed')
    expect(failed.map(({ code }) => code).sort()).toEqual([
      'E003',
      ...Array.from({ length: 4 }, () => 'chunk_failed'),
    ])
  })

  it.each<[string, () => DirectImport]>([
    [
      'answers 500',
      () => {
        throw new CoreError('500', { code: 'server_error', outcome: 'unknown', status: 500 })
      },
    ],
    [
      'has a fault of its database',
      () => ({ outcome: 'rejected', errors: ['PSQLException: FATAL: sorry, too many clients'] }),
    ],
  ])('are not blamed when the core %s once', async (_, fault) => {
    const asked = new Set<string | undefined>()
    const { open, simulated } = sceneOfChunks(
      { blame: () => 'chunk' },
      {
        async importUser(user) {
          if (asked.has(user.externalUserId)) return simulated.importUser(user)
          asked.add(user.externalUserId)
          return fault()
        },
      },
    )
    simulated.importLater(taker('user-3'))
    expect(await (await open()).run()).toMatchObject({
      state: 'to_correct',
      counts: { failed: 1, reconciled: 9 },
    })
    expect(asked.size).toBe(4)
  })

  it('wait for a person where the code blames the core', async () => {
    let isMended = false
    const { open, simulated } = sceneOfChunks({ blame: () => (isMended ? 'culprit' : 'core') })
    simulated.importLater(taker('user-3'))
    const migration = await open()
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'to_correct', counts: { failed: 5, reconciled: 5 } })
    expect(report.advice.join()).toContain('E019')
    isMended = true
    expect(await migration.correct({ again: ['E019'] })).toMatchObject({
      counts: { failed: 1, reconciled: 9 },
    })
  })
})

describe('rows that the core never ends', () => {
  const STUCK = { poison: new Set(['user-7']), blame: () => 'nobody' as const }

  /** A run that has stalled because of one user. */
  async function stalled(overrides: Parameters<typeof scene>[0] = {}) {
    const found = sceneOfChunks(STUCK, overrides, { stallMinutes: 2 })
    const migration = await found.open()
    return { ...found, migration, report: await migration.run() }
  }

  it('are named by a stalled run, which reconciles all others', async () => {
    const { simulated, report } = await stalled()
    expect(report).toMatchObject({ state: 'stalled', counts: { reconciled: 5, staged: 5 } })
    const rows = [5, 6, 7, 8, 9].map((user) => `user-${user}`)
    expect(report.rows?.map(({ externalUserId }) => externalUserId).sort()).toEqual(rows)
    for (const { id, status } of report.rows ?? []) {
      expect(simulated.rows_.find((row) => row.id === id)?.status).toBe(status)
    }
  })

  it('keep nobody else waiting: who has failed in another chunk is imported alone', async () => {
    const { open, simulated, time } = sceneOfChunks(
      { ...STUCK, blame: () => 'chunk' },
      {},
      { stallMinutes: 10 },
    )
    simulated.importLater(taker('user-3'))
    const report = await (await open()).run()
    expect(report).toMatchObject({
      state: 'stalled',
      counts: { reconciled: 4, failed: 1, staged: 5 },
    })
    expect(time.elapsedMs()).toBeLessThan(15 * 60_000)
  })

  it('leave by `unblock`, and a run imports the innocent ones', async () => {
    const { migration, simulated } = await stalled()
    const report = await migration.unblock()
    expect(report).toMatchObject({ state: 'interrupted', counts: { pending: 5, reconciled: 5 } })
    expect(simulated.rows_).toEqual([])
    expect(await migration.run()).toMatchObject({
      state: 'to_correct',
      counts: { failed: 1, reconciled: 9 },
    })
    const [failed] = (await listOf(migration.identities())).filter(({ code }) => code !== undefined)
    expect(failed).toMatchObject({ externalUserId: 'user-7', code: 'chunk_failed' })
    expect(failed?.text).toContain('also refuses the user in a separate call')
    expect((await migration.status()).advice.join()).toContain('use correct --again chunk_failed')
    const left = { leaveOut: 'user-7', reason: 'the core cannot import it' }
    expect(await migration.correct(sourceOf([left], 'corrections'))).toMatchObject({
      state: 'complete',
    })
  })

  it('are not deleted unless a run has stalled', async () => {
    const { open } = scene()
    const migration = await open()
    const rejection = {
      code: 'bad_journal',
      message: expect.stringContaining('no run has stalled'),
    }
    await expect(migration.unblock()).rejects.toMatchObject(rejection)
    await migration.run()
    await expect(migration.unblock()).rejects.toMatchObject(rejection)
  })

  it('leave when an `unblock` that was interrupted goes on', async () => {
    let isAway = true
    const { open, migration, simulated } = await stalled({
      async deleteRows(ids) {
        if (isAway) throw refusal('server_error')
        return simulated.deleteRows(ids)
      },
    })
    expect(await migration.unblock()).toMatchObject({ state: 'core_fault' })
    isAway = false
    const next = await open()
    expect(await next.unblock()).toMatchObject({ counts: { pending: 5, reconciled: 5 } })
    expect(simulated.rows_).toEqual([])
  })

  it('stay, with the account that holds their login, for somebody who only looks', async () => {
    const { migration, simulated } = await stalled()
    simulated.importNow(taker('user-6'))
    const { state, rows = [] } = await migration.reconcile()
    expect(state).toBe('stalled')
    const heldBy = idOf(simulated, 'taker-of-user-6')
    expect(rows.find(({ externalUserId }) => externalUserId === 'user-6')).toMatchObject({ heldBy })
    expect(rows.filter((row) => 'heldBy' in row)).toHaveLength(1)
    expect(simulated.rows_).toHaveLength(5)
  })

  it('are waited for by the next run, when they move again', async () => {
    const { open } = sceneOfChunks({ jobEveryMs: FIVE_MINUTES }, {}, { stallMinutes: 2 })
    const migration = await open()
    expect(await migration.run()).toMatchObject({ state: 'stalled' })
    expect(await migration.run()).toMatchObject({ state: 'stalled' })
    expect(await migration.run()).toMatchObject({ state: 'complete' })
  })
})
