import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  ALL_FEATURES,
  BAD_USERS,
  type BadUser,
  isTheText,
  KNOWN,
} from '../support/migration/bad-users/index.js'
import { type CoreUnderTest, openCore } from './core-under-test.js'

let core: CoreUnderTest
let asked: readonly BadUser[]

beforeAll(async () => {
  core = await openCore()
  for (const role of KNOWN.roles) await core.makeRole(role)
  const has = (feature: string): boolean => core.features.has(feature)
  if (has('multi_tenancy')) {
    for (const tenantId of KNOWN.tenants.slice(1)) await core.makeTenant(tenantId)
  }
  const concerns = { all: ALL_FEATURES.every(has), none: !ALL_FEATURES.some(has) }
  asked = BAD_USERS.filter(({ features, isFault }) => {
    return !isFault && (features === undefined || concerns[features])
  })
})
afterAll(() => core?.close())

it('is asked of 150 bad users at least', () => {
  expect(asked.length).toBeGreaterThanOrEqual(150)
})

const areTheTexts = (errors: readonly string[], said: readonly string[] | undefined): boolean =>
  said?.length === errors.length && errors.every((text, at) => isTheText(text, said[at] ?? ''))

it('says the same of each bad user as the validation, by its index', async () => {
  const { status, json } = await core.stage(asked.map(({ user }) => user as object))
  expect(status).toBe(400)
  const said = new Map<number, string[]>(
    json.users.map(({ index, errors }: { index: number; errors: string[] }) => [index, errors]),
  )
  const differences = asked.flatMap(({ name, errors }, index) =>
    areTheTexts(errors, said.get(index)) ? [] : [{ name, errors, said: said.get(index) }],
  )
  expect(differences).toEqual([])
})

it('says the same of a user who is imported directly', async () => {
  for (const { user, errors } of asked.slice(-10)) {
    const { status, json } = await core.post('/bulk-import/import', user)
    expect({ status, same: areTheTexts(errors, json.errors) }).toEqual({ status: 400, same: true })
  }
})
