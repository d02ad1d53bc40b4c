import { Refused } from '../../../../src/testing/core/mint.js'
import { assertTenant, stored } from './accounts.js'
import type { Feature } from './imported-user.js'
import {
  BadInput,
  field,
  isString,
  type JsonObject,
  parseObject,
  requiredText,
  trim,
} from './input.js'
import type { Call, Route } from './router.js'
import type { Tables, Tenant } from './tables.js'

/** The routes for the core's settings (tenants, roles, features), and for the data under users' ids. */
export function settingsRoutes(
  tables: Tables,
  features: () => ReadonlySet<Feature>,
): [string, Route][] {
  return [
    ['/recipe/role', written('PUT', putRole)],
    ['/recipe/role/remove', written('POST', removeRole)],
    ['/recipe/roles', shown('refused', () => ({ roles: [...tables.roles] }))],
    ['/recipe/user/roles', shown('served', rolesOf)],
    ['/recipe/user/metadata', shown('refused', metadataOf)],
    ['/recipe/totp/device/list', shown('refused', devicesOf)],
    ['/recipe/multitenancy/tenant/list/v2', shown('served', tenants)],
    ['/recipe/multitenancy/tenant/v2', written('PUT', makeTenant)],
    ['/recipe/multitenancy/tenant/remove', written('POST', removeTenant)],
    ['/ee/featureflag', shown('refused', () => ({ features: [...features()], usageStats: {} }))],
  ]

  function putRole(body: JsonObject): object {
    const role = trim(field(body, 'role', isString))
    if (role === '') throw new BadInput("Field name 'role' cannot be an empty String")
    const createdNewRole = !tables.roles.has(stored(role))
    if (createdNewRole) tables.change({ role })
    return { createdNewRole }
  }

  function removeRole(body: JsonObject): object {
    const role = field(body, 'role', isString)
    const didRoleExist = tables.roles.has(stored(role))
    if (didRoleExist) tables.change({ roleGone: role })
    return { didRoleExist }
  }

  function rolesOf({ query: asked, tenantId }: Call): object {
    const userId = requiredText(asked, 'userId')
    assertTenant(tables, tenantId)
    const given = tables.data.get(stored(userId))?.roles ?? []
    const here = given.filter(({ tenantIds }) => tenantIds.includes(tenantId))
    return { roles: here.map(({ role }) => role) }
  }

  function metadataOf({ query: asked }: Call): object {
    const userId = stored(requiredText(asked, 'userId'))
    return { metadata: tables.data.get(userId)?.metadata ?? {} }
  }

  function devicesOf({ query: asked }: Call): object {
    const userId = requiredText(asked, 'userId')
    if (userId === '') throw new BadInput('userId cannot be empty')
    const devices = tables.data.get(stored(userId))?.devices ?? []
    return {
      devices: devices.map(({ deviceName: name, period, skew }) => {
        return { name, period, skew, verified: true }
      }),
    }
  }

  function tenants({ tenantId }: Call): object {
    assertTenant(tables, tenantId)
    if (tenantId !== 'public') {
      const whose = 'list all tenants associated with this app'
      throw new Refused(403, `Only the public tenantId is allowed to ${whose}`)
    }
    return { tenants: [...tables.tenants.values()].map(toShownTenant) }
  }

  function makeTenant(body: JsonObject): object {
    if (!features().has('multi_tenancy')) throw new Refused(402, NO_MULTITENANCY)
    const tenantId = trim(field(body, 'tenantId', isString)).toLowerCase()
    const createdNew = !tables.tenants.has(stored(tenantId))
    tables.change({ tenant: { tenantId, thirdPartyIds: [] } })
    return { createdNew }
  }

  function removeTenant(body: JsonObject): object {
    const tenantId = trim(field(body, 'tenantId', isString)).toLowerCase()
    const didExist = tables.tenants.has(stored(tenantId))
    if (didExist) tables.change({ tenantGone: tenantId })
    return { didExist }
  }
}

const NO_MULTITENANCY =
  "Cannot use feature: multi_tenancy, because the license key is missing, or doesn't have this feature enabled."

function toShownTenant({ tenantId, thirdPartyIds }: Tenant): object {
  const providers = thirdPartyIds.map((thirdPartyId) => ({ thirdPartyId, clients: [] }))
  // A tenant that was made without factors has none; the default tenant does not restrict them.
  const factors = tenantId === 'public' ? {} : { firstFactors: [] }
  return { tenantId, thirdParty: { providers }, ...factors, coreConfig: {} }
}

function shown(tenants: Route['tenants'], answerTo: (call: Call) => object): Route {
  const answer = (call: Call) => ({
    status: 200,
    body: { ...answerTo(call), status: 'OK' },
  })
  return { tenants, answers: { GET: answer } }
}

function written(method: 'PUT' | 'POST', change: (body: JsonObject) => object): Route {
  const answer = async ({ body }: Call) => ({
    status: 200,
    body: { status: 'OK', ...change(parseObject(await body())) },
  })
  return { tenants: 'refused', answers: { [method]: answer } }
}
