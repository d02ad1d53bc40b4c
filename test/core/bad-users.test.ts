import { afterAll, beforeAll, expect, it } from 'vitest'
import { BAD_USERS } from './bad-users.js'
import { type CoreUnderTest, openCore } from './core-under-test.js'

let core: CoreUnderTest

beforeAll(async () => {
  core = await openCore()
})
afterAll(() => core?.close())

it('has 150 bad users at least', () => {
  expect(BAD_USERS.length).toBeGreaterThanOrEqual(150)
})

it('says the same of each bad user, by its index', async () => {
  const asked = BAD_USERS.filter(({ feature }) => !feature || core.features.has(feature))
  const { status, json } = await core.stage(asked.map(({ user }) => user))
  expect(status).toBe(400)
  const said = new Map<number, string[]>(
    json.users.map(({ index, errors }: { index: number; errors: string[] }) => [index, errors]),
  )
  const differences = asked.flatMap(({ name, errors }, index) =>
    JSON.stringify(said.get(index)) === JSON.stringify(errors)
      ? []
      : [{ name, errors, said: said.get(index) }],
  )
  expect(differences).toEqual([])
})

it('says the same of a user who is imported directly', async () => {
  for (const { user, errors } of BAD_USERS.filter(({ feature }) => !feature).slice(-10)) {
    const { status, json } = await core.post('/bulk-import/import', user)
    expect({ status, errors: json.errors }).toEqual({ status: 400, errors })
  }
})
