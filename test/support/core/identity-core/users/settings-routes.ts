import { BadInput, field, isString, type JsonObject, parseObject } from '../json-input.js'
import { Refused } from '../reply.js'
import type { Call, Route } from '../router.js'
import type { Query } from './database.js'
import type { Feature } from './imported-user.js'
import { trim } from './java-text.js'
import { requiredText } from './query-input.js'
import { assertTenant, listRoles, listTenants, putTenant } from './tenants.js'

/** The routes for the core's settings (tenants, roles, features), and for the data under users' ids. */
export function settingsRoutes(
  query: Query,
  features: () => ReadonlySet<Feature>,
): [string, Route][] {
  return [
    ['/recipe/role', written('PUT', putRole)],
    ['/recipe/role/remove', written('POST', removeRole)],
    ['/recipe/roles', shown('refused', async () => ({ roles: await listRoles(query) }))],
    ['/recipe/user/roles', shown('served', rolesOf)],
    ['/recipe/user/metadata', shown('refused', metadataOf)],
    ['/recipe/totp/device/list', shown('refused', devicesOf)],
    ['/recipe/multitenancy/tenant/list/v2', shown('served', tenants)],
    ['/recipe/multitenancy/tenant/v2', written('PUT', makeTenant)],
    ['/recipe/multitenancy/tenant/remove', written('POST', removeTenant)],
    ['/ee/featureflag', shown('refused', () => ({ features: [...features()], usageStats: {} }))],
  ]

  async function putRole(body: JsonObject): Promise<object> {
    const role = trim(field(body, 'role', isString))
    if (role === '') throw new BadInput("Field name 'role' cannot be an empty String")
    const rows = await query(
      'insert into roles (role) values ($1) on conflict do nothing returning role',
      [role],
    )
    return { createdNewRole: rows.length > 0 }
  }

  async function removeRole(body: JsonObject): Promise<object> {
    const role = field(body, 'role', isString)
    await query('delete from user_roles where role = $1', [role])
    const rows = await query('delete from roles where role = $1 returning role', [role])
    return { didRoleExist: rows.length > 0 }
  }

  async function rolesOf({ query: asked, tenantId }: Call): Promise<object> {
    const userId = requiredText(asked, 'userId')
    await assertTenant(query, tenantId)
    const rows = await query<{ role: string }>(
      'select role from user_roles where user_id = $1 and tenant_id = $2',
      [userId, tenantId],
    )
    return { roles: rows.map(({ role }) => role) }
  }

  async function metadataOf({ query: asked }: Call): Promise<object> {
    const [row] = await query<{ user_metadata: string }>(
      'select user_metadata from user_metadata where user_id = $1',
      [requiredText(asked, 'userId')],
    )
    return { metadata: JSON.parse(row?.user_metadata ?? '{}') }
  }

  async function devicesOf({ query: asked }: Call): Promise<object> {
    const userId = requiredText(asked, 'userId')
    if (userId === '') throw new BadInput('userId cannot be empty')
    // As JSON, because PGlite drops a byte order mark at the beginning of a text.
    const devices = await query<{ device: object }>(
      `select json_build_object('name', device_name, 'period', period, 'skew', skew,
         'verified', verified) as device
       from totp_user_devices where user_id = $1 order by position`,
      [userId],
    )
    return { devices: devices.map(({ device }) => device) }
  }

  async function tenants({ tenantId }: Call): Promise<object> {
    await assertTenant(query, tenantId)
    if (tenantId !== 'public') {
      const whose = 'list all tenants associated with this app'
      throw new Refused(403, `Only the public tenantId is allowed to ${whose}`)
    }
    const all = await listTenants(query)
    return { tenants: all.map(toShownTenant) }
  }

  async function makeTenant(body: JsonObject): Promise<object> {
    if (!features().has('multi_tenancy')) throw new Refused(402, NO_MULTITENANCY)
    const tenantId = trim(field(body, 'tenantId', isString)).toLowerCase()
    return { createdNew: await putTenant(query, { tenantId, thirdPartyIds: [] }) }
  }

  async function removeTenant(body: JsonObject): Promise<object> {
    const tenantId = trim(field(body, 'tenantId', isString)).toLowerCase()
    const rows = await query('delete from tenants where tenant_id = $1 returning 1', [tenantId])
    return { didExist: rows.length > 0 }
  }
}

const NO_MULTITENANCY =
  "Cannot use feature: multi_tenancy, because the license key is missing, or doesn't have this feature enabled."

function toShownTenant({
  tenantId,
  thirdPartyIds,
}: {
  tenantId: string
  thirdPartyIds: readonly string[]
}): object {
  const providers = thirdPartyIds.map((thirdPartyId) => ({ thirdPartyId, clients: [] }))
  // A tenant that was made without factors has none; the default tenant does not restrict them.
  const factors = tenantId === 'public' ? {} : { firstFactors: [] }
  return { tenantId, thirdParty: { providers }, ...factors, coreConfig: {} }
}

function shown(
  tenants: Route['tenants'],
  answerTo: (call: Call) => Promise<object> | object,
): Route {
  const answer = async (call: Call) => ({
    status: 200,
    body: { ...(await answerTo(call)), status: 'OK' },
  })
  return { tenants, answers: { GET: answer } }
}

function written(method: 'PUT' | 'POST', change: (body: JsonObject) => Promise<object>): Route {
  const answer = async ({ body }: Call) => ({
    status: 200,
    body: { status: 'OK', ...(await change(parseObject(await body()))) },
  })
  return { tenants: 'refused', answers: { [method]: answer } }
}
