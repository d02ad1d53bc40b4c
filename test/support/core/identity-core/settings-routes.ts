import { Refused } from '../../../../src/testing/core/mint.js'
import { assertTenant } from './accounts.js'
import type { Feature } from './imported-user.js'
import { badInput, field, type JsonObject, requiredText, trim } from './input.js'
import type { Call, Routes } from './router.js'
import type { Tables } from './tables.js'

/** The routes for the core's settings (tenants, roles, features), and for the data under users' ids. */
export function settingsRoutes(tables: Tables, features: () => ReadonlySet<Feature>): Routes {
  const ok = (answerTo: (call: Call) => object) => ({
    answer: (call: Call) => ({ ...answerTo(call), status: 'OK' }),
  })
  return {
    'PUT /recipe/role': ok(({ body }) => putRole(body)),
    'POST /recipe/role/remove': ok(({ body }) => {
      const role = field(body, 'role', 'string')
      const didRoleExist = tables.roles.has(role)
      tables.change({ roleGone: role })
      return { didRoleExist }
    }),
    'GET /recipe/roles': ok(() => ({ roles: [...tables.roles] })),
    'GET /recipe/user/roles': { ...ok(rolesOf), isPerTenant: true },
    'GET /recipe/user/metadata': ok(({ query }) => {
      const userId = requiredText(query, 'userId')
      return { metadata: tables.data.get(userId)?.metadata ?? {} }
    }),
    'GET /recipe/totp/device/list': ok(devicesOf),
    'GET /recipe/multitenancy/tenant/list/v2': { ...ok(tenants), isPerTenant: true },
    'PUT /recipe/multitenancy/tenant/v2': ok(({ body }) => makeTenant(body)),
    'POST /recipe/multitenancy/tenant/remove': ok(({ body }) => {
      const tenantId = trim(field(body, 'tenantId', 'string')).toLowerCase()
      const didExist = tables.tenants.has(tenantId)
      tables.change({ tenantGone: tenantId })
      return { didExist }
    }),
    'GET /ee/featureflag': ok(() => ({ features: [...features()], usageStats: {} })),
  }

  function putRole(body: JsonObject): object {
    const role = trim(field(body, 'role', 'string'))
    if (role === '') throw badInput("Field name 'role' cannot be an empty String")
    const createdNewRole = !tables.roles.has(role)
    tables.change({ role })
    return { createdNewRole }
  }

  function rolesOf({ query, tenantId }: Call): object {
    const userId = requiredText(query, 'userId')
    assertTenant(tables, tenantId)
    const given = tables.data.get(userId)?.roles ?? []
    const here = given.filter(({ tenantIds }) => tenantIds.includes(tenantId))
    return { roles: here.map(({ role }) => role).filter((role) => tables.roles.has(role)) }
  }

  function devicesOf({ query }: Call): object {
    const userId = requiredText(query, 'userId')
    if (userId === '') throw badInput('userId cannot be empty')
    const devices = tables.data.get(userId)?.devices ?? []
    return {
      devices: devices.map(({ deviceName: name, period, skew }) => {
        return { name, period, skew, verified: true }
      }),
    }
  }

  function tenants({ tenantId }: Call): object {
    assertTenant(tables, tenantId)
    return { tenants: [...tables.tenants].map(toShownTenant) }
  }

  function makeTenant(body: JsonObject): object {
    if (!features().has('multi_tenancy')) throw new Refused(402, NO_MULTITENANCY)
    const tenantId = trim(field(body, 'tenantId', 'string')).toLowerCase()
    const createdNew = !tables.tenants.has(tenantId)
    tables.change({ tenant: tenantId })
    return { createdNew }
  }
}

const NO_MULTITENANCY =
  "Cannot use feature: multi_tenancy, because the license key is missing, or doesn't have this feature enabled."

function toShownTenant(tenantId: string): object {
  // A tenant that was made without factors has none; the default tenant does not restrict them.
  const factors = tenantId === 'public' ? {} : { firstFactors: [] }
  return { tenantId, thirdParty: { providers: [] }, ...factors, coreConfig: {} }
}
