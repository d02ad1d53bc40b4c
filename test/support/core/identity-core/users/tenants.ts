import { noSuchTenant } from '../router.js'
import type { Query } from './database.js'

export interface Tenant {
  readonly tenantId: string
  /** The third-party providers that are configured for the tenant. */
  readonly thirdPartyIds: readonly string[]
}

/** Returns the tenants in the order of their creation, `public` first. */
export async function listTenants(query: Query): Promise<Tenant[]> {
  const rows = await query<{ tenant_id: string; third_party_ids: string }>(
    'select tenant_id, third_party_ids from tenants order by position',
  )
  return rows.map(({ tenant_id, third_party_ids }) => ({
    tenantId: tenant_id,
    thirdPartyIds: JSON.parse(third_party_ids) as string[],
  }))
}

/** Returns whether it is new. */
export async function putTenant(
  query: Query,
  { tenantId, thirdPartyIds }: Tenant,
): Promise<boolean> {
  const [row] = await query<{ is_new: boolean }>(
    `insert into tenants (tenant_id, third_party_ids) values ($1, $2)
     on conflict (tenant_id) do update set third_party_ids = excluded.third_party_ids
     returning xmax = 0 as is_new`,
    [tenantId, JSON.stringify(thirdPartyIds)],
  )
  return row?.is_new ?? false
}

/** @throws {BadInput} if there is no such tenant */
export async function assertTenant(query: Query, tenantId: string): Promise<void> {
  const rows = await query('select 1 from tenants where tenant_id = $1', [tenantId])
  if (rows.length === 0) throw noSuchTenant(tenantId)
}

export async function listRoles(query: Query): Promise<string[]> {
  const rows = await query<{ role: string }>('select role from roles order by position')
  return rows.map(({ role }) => role)
}
