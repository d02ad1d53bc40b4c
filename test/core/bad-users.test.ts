import { afterAll, beforeAll, expect, it } from 'vitest'
import { isValidationText } from '../../src/migration/core/core-texts.js'
import { ALL_FEATURES, BAD_USERS, type BadUser, KNOWN } from '../support/migration/bad-users.js'
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

interface Refusal {
  readonly users: readonly { readonly index: number; readonly errors: string[] }[]
}

it('refuses each of them, in words that the package knows', async () => {
  const body = { users: asked.map(({ user }) => user) }
  const { users } = await ask<Refusal>('POST', '/bulk-import/users', { ...core, body })
  expect(users.map(({ index }) => index)).toEqual(asked.map((_, index) => index))
  const unknown = users.flatMap(({ errors }) => errors.filter((text) => !isValidationText(text)))
  expect(unknown).toEqual([])
})

it('refuses a user who is imported directly in such words, too', async () => {
  for (const { user } of asked.slice(-10)) {
    const body = user as object
    const { errors } = await ask<{ errors: string[] }>('POST', '/bulk-import/import', {
      ...core,
      body,
    })
    expect(errors.length).toBeGreaterThan(0)
    expect(errors.filter((text) => !isValidationText(text))).toEqual([])
  }
})
