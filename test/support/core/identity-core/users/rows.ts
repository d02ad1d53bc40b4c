import type { JsonObject } from '../json-input.js'
import type { Query } from './database.js'
import type { ImportedUser } from './imported-user.js'
import { withoutAbsent } from './java-text.js'

export const ROW_STATUSES = ['NEW', 'PROCESSING', 'FAILED'] as const

export type RowStatus = (typeof ROW_STATUSES)[number]

export interface Row {
  readonly id: string
  readonly raw_data: string
  readonly status: RowStatus
  readonly error_msg: string | null
  readonly created_at: number
  readonly updated_at: number
}

/** The first row of a page. */
export interface RowPlace {
  readonly id: string
  readonly createdAt: bigint
}

export interface PageQuery {
  readonly status?: RowStatus | undefined
  readonly from?: RowPlace | undefined
  readonly limit: number
}

export async function addRows(
  query: Query,
  users: readonly ImportedUser[],
  nowMs: number,
): Promise<void> {
  const rows = users.map((user) => ({ id: user.id, raw_data: toRawData(user) }))
  await query(
    `insert into bulk_import_users (id, raw_data, created_at, updated_at)
     select id, raw_data, $2, $2
     from json_to_recordset($1::json) as row (id text, raw_data text)`,
    [JSON.stringify(rows), nowMs],
  )
}

/** Returns the newest first. */
export function listRows(query: Query, { status, from, limit }: PageQuery): Promise<Row[]> {
  return query<Row>(
    `select * from bulk_import_users
     where ($1::text is null or status = $1)
       and ($2::bigint is null or created_at < $2 or (created_at = $2 and id <= $3))
     order by created_at desc, id desc limit $4`,
    [status ?? null, from?.createdAt ?? null, from?.id ?? null, limit],
  )
}

export async function countRows(query: Query, status: RowStatus | undefined): Promise<number> {
  const [row] = await query<{ count: number }>(
    'select count(*) as count from bulk_import_users where $1::text is null or status = $1',
    [status ?? null],
  )
  return row?.count ?? 0
}

/** Deletes rows of any status, and returns the ids of the deleted ones. */
export async function deleteRows(query: Query, ids: readonly string[]): Promise<string[]> {
  const rows = await query<{ id: string }>(
    `delete from bulk_import_users
     where id in (select json_array_elements_text($1::json)) returning id`,
    [JSON.stringify(ids)],
  )
  return rows.map(({ id }) => id)
}

/** Returns the row as the core shows it: the user in clear text, with every secret. */
export function toShownRow(row: Row): object {
  const { status, error_msg: errorMessage, created_at: createdAt, updated_at: updatedAt } = row
  return withoutAbsent({ ...rawUser(row), status, errorMessage, createdAt, updatedAt })
}

export function rawUser({ raw_data }: Row): JsonObject {
  return JSON.parse(raw_data) as JsonObject
}

/** The core drops members that are null, also in metadata. */
function toRawData(user: ImportedUser): string {
  return JSON.stringify(user, (_, value) => value ?? undefined)
}
