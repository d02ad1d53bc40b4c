import { describe, expect, it } from 'vitest'
import { memoryJournal } from './support/memory-journal.js'
import { people, sourceOf } from './support/people.js'
import { listOf, scene, USERS } from './support/scene.js'

describe('a journal', () => {
  it('is refused with another source, another core or without its corrections', async () => {
    const { open } = scene()
    const first = await open()
    await first.run()
    const other = await open({ source: sourceOf(people(3), 'others') })
    await expect(other.run()).rejects.toMatchObject({ code: 'bad_journal' })
    const changed = await open({ source: sourceOf(people(USERS + 1)) })
    await expect(changed.run()).rejects.toMatchObject({ code: 'bad_source' })
    const corrected = await open({ corrections: [sourceOf([{}], 'corrections')] })
    await expect(corrected.run()).rejects.toMatchObject({ code: 'bad_corrections' })
  })

  it('of another core is refused when it is opened', async () => {
    const { open, simulated } = scene()
    const at = (baseUrl: string) => open({ core: { ...simulated, baseUrl } })
    await (await at('https://one.example/')).run()
    await expect(at('https://two.example')).rejects.toMatchObject({ code: 'bad_journal' })
    await expect(at('https://one.example')).resolves.toBeDefined()
  })

  it('that cannot be written ends the run, and nothing is sent', async () => {
    const { open, simulated } = scene()
    const broken = memoryJournal([], () => {
      throw new Error('disk full')
    })
    await expect((await open({ journal: broken })).run()).rejects.toThrow('disk full')
    expect(simulated.staged.size).toBe(0)
  })
})

describe('a reconciliation before the first run', () => {
  it('is refused, and nothing of it is written down', async () => {
    const { open, journal } = scene()
    const migration = await open()
    await migration.check()
    const before = [...journal.lines]
    await expect(migration.reconcile()).rejects.toMatchObject({
      code: 'bad_journal',
      message: 'nothing has been staged yet: run comes before reconcile',
    })
    expect(journal.lines).toEqual(before)
    expect(await migration.run()).toMatchObject({ state: 'complete' })
  })
})

describe('openMigration', () => {
  it('begins the journal once, whoever asks for the source at the same time', async () => {
    const { open, journal } = scene()
    const migration = await open()
    const [, report] = await Promise.all([
      listOf(migration.identities()),
      migration.run(),
      listOf(migration.identities()),
    ])
    expect(report).toMatchObject({ state: 'complete' })
    expect(journal.lines.filter((line) => line.includes('"begun"'))).toHaveLength(1)
  })

  it('names each option that is wrong', async () => {
    const { open } = scene()
    const wrong = { batchUsers: 0, lookUps: 65, pollSeconds: 0, nonsense: 1 } as object
    await expect(open(wrong)).rejects.toThrow(TypeError)
    await expect(open(wrong)).rejects.toThrow(/batchUsers.*pollSeconds.*lookUps.*nonsense/)
  })

  it('takes one step at a time', async () => {
    const migration = await scene().open()
    const first = migration.run()
    await expect(migration.run()).rejects.toThrow('in progress')
    expect(await first).toMatchObject({ state: 'complete' })
  })
})
