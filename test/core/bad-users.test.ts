import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  ALL_FEATURES,
  BAD_USERS,
  type BadUser,
  isTheText,
  KNOWN,
} from '../support/migration/bad-users/index.js'
import { ask, type CoreUnderTest, openCore } from './core-under-test.js'

let core: CoreUnderTest
let asked: readonly BadUser[]
/** Of the others that may use the core, nobody has these. */
let tenants: readonly string[] = []

beforeAll(async () => {
  core = await openCore()
  const has = (feature: string): boolean => core.features.has(feature)
  if (has('multi_tenancy')) tenants = KNOWN.tenants.slice(1)
  for (const role of KNOWN.roles) await ask('PUT', '/recipe/role', { ...core, body: { role } })
  for (const tenantId of tenants) {
    await ask('PUT', '/recipe/multitenancy/tenant/v2', { ...core, body: { tenantId } })
  }
  const concerns = { all: ALL_FEATURES.every(has), none: !ALL_FEATURES.some(has) }
  asked = BAD_USERS.filter(({ features, isFault }) => {
    return !isFault && (features === undefined || concerns[features])
  })
})
afterAll(async () => {
  for (const role of KNOWN.roles)
    await ask('POST', '/recipe/role/remove', { ...core, body: { role } })
  for (const tenantId of tenants) {
    await ask('POST', '/recipe/multitenancy/tenant/remove', { ...core, body: { tenantId } })
  }
  await core.close()
})

it('is asked of 150 bad users at least', () => {
  expect(asked.length).toBeGreaterThanOrEqual(150)
})

const areTheTexts = (errors: readonly string[], said: readonly string[] | undefined): boolean =>
  said?.length === errors.length && errors.every((text, at) => isTheText(text, said[at] ?? ''))

interface Refusal {
  readonly users: readonly { readonly index: number; readonly errors: string[] }[]
}

it('says the same of each bad user as the validation, by its index', async () => {
  const body = { users: asked.map(({ user }) => user) }
  const { users } = await ask<Refusal>('POST', '/bulk-import/users', { ...core, body })
  const said = new Map(users.map(({ index, errors }) => [index, errors]))
  const differences = asked.flatMap(({ name, errors }, index) =>
    areTheTexts(errors, said.get(index)) ? [] : [{ name, errors, said: said.get(index) }],
  )
  expect(differences).toEqual([])
})

it('says the same of a user who is imported directly', async () => {
  for (const { user, errors } of asked.slice(-10)) {
    const body = user as object
    const said = await ask<{ errors: string[] }>('POST', '/bulk-import/import', { ...core, body })
    expect(areTheTexts(errors, said.errors)).toBe(true)
  }
})
