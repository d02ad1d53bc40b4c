import { rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Ledger } from '../../support/receiver/coupled-receiver.js'

/** What Linux answers to every write there: no space left on device. */
const FULL_DEVICE = '/dev/full'

/**
 * Puts a table that is empty on a device without space, for connections that are made from now on:
 * Postgres takes any file under the name of the table's.
 */
export async function fullDiskUnder(
  ledger: Ledger,
  table: string,
): Promise<{ freeUp(): Promise<void> }> {
  const [row] = await ledger.query<{ folder: string; path: string }>(
    "select current_setting('data_directory') as folder, pg_relation_filepath($1) as path",
    [table],
  )
  if (row === undefined) throw new Error(`There is no table ${table}`)
  const path = join(row.folder, row.path)
  await rename(path, `${path}.aside`)
  await symlink(FULL_DEVICE, path)
  return {
    async freeUp() {
      await rm(path)
      await rename(`${path}.aside`, path)
    },
  }
}
