import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  accountsByExternalId,
  rowsWith,
  type StandInCore,
  startStandInCore,
} from '../../support/core/stand-in-core.js'
import {
  type Ended,
  type Place,
  type Project,
  runStep,
  toldAccounts,
  toTheEnd,
  unharmed,
  writeProject,
} from './kit.js'

let core: StandInCore

beforeAll(async () => {
  core = await startStandInCore({ job: { intervalMs: 50 } })
})
afterAll(() => core.close())

async function placeNamed(prefix: string): Promise<Place> {
  const project = await writeProject(prefix, 6)
  return { project, coreUrl: core.url, apiKey: core.apiKey }
}

/** Each identity has one account, no row is left, and the report says the same. */
async function expectEachOnce(project: Project, ended: Ended | undefined): Promise<void> {
  expect(ended).toMatchObject({ exitCode: 0 })
  const { externalUserIds } = project
  const accounts = await accountsByExternalId(core)
  const here = externalUserIds.map((id) => [id, accounts.get(id)])
  expect(here.filter(([, account]) => account === undefined)).toEqual([])
  expect(new Set(here.map(([, account]) => account)).size).toBe(externalUserIds.length)
  expect([...(await toldAccounts(project))]).toEqual(here)
  // Twins without an external id, too: there is one account to each e-mail address.
  const prefix = externalUserIds[0]?.replace(/-\d+$/, '')
  const emailsOf = [...core.tables.accounts.values()]
    .map(({ methods }) => methods.flatMap(({ email }) => email ?? []))
    .filter((emails) => emails.some((email) => email.startsWith(`${prefix}-`)))
  expect({ accounts: emailsOf.length, emails: new Set(emailsOf.flat()).size }).toEqual({
    accounts: externalUserIds.length,
    emails: externalUserIds.length,
  })
  expect(rowsWith(`${prefix}-`, core)).toEqual([])
}

it('a migration that nobody kills comes to its end by one correction', async () => {
  const place = await placeNamed('unharmed')
  const all = await toTheEnd(place, unharmed)
  expect(all.map(({ exitCode }) => exitCode)).toEqual([4, 0])
  await expectEachOnce(place.project, all.at(-1))
})

const AT_ONCE = 3

/** Kills at the first entry, the second, and so on, until a step has fewer. */
async function killAtEach(step: 'run' | 'correct', moment: 'before' | 'after'): Promise<number> {
  for (let from = 1; ; from += AT_ONCE) {
    const numbers = Array.from({ length: AT_ONCE }, (_, index) => from + index)
    const died = await Promise.all(numbers.map((number) => dyingOnce(step, `${number}:${moment}`)))
    if (died.includes(false)) return from + died.indexOf(false) - 1
  }
}

/** Whether the step has died before it came to its end. */
async function dyingOnce(step: 'run' | 'correct', dieAt: string): Promise<boolean> {
  const place = await placeNamed(`${step}-${dieAt.replace(':', '-')}`)
  let hasDied = false
  const all = await toTheEnd(place, async (_, name) => {
    if (name !== step || hasDied) return unharmed(place, name)
    const ended = await runStep(place, name, { dieAt })
    hasDied = ended.exitCode === null
    return ended
  })
  await expectEachOnce(place.project, all.at(-1))
  return hasDied
}

it.for([
  ['run', 'before'],
  ['run', 'after'],
  ['correct', 'before'],
  ['correct', 'after'],
] as const)(
  'killed in `%s`, %s each entry, each identity has one account',
  async ([step, moment]) => {
    expect(await killAtEach(step, moment)).toBeGreaterThan(5)
  },
)
