import type { Query } from './database.js'
import { ChunkFault } from './import-fault.js'
import type { ImportedUser, ImportSettings, TotpDevice } from './imported-user.js'
import { ownId } from './own-id.js'

interface OwnedDevice {
  readonly user: ImportedUser
  readonly device: TotpDevice
}

/** @throws {ChunkFault} E036 or E037 */
export async function addDevices(
  query: Query,
  users: readonly ImportedUser[],
  { features, nowMs }: ImportSettings,
): Promise<void> {
  const owned = users.flatMap((user) =>
    (user.totpDevices ?? []).map((device): OwnedDevice => ({ user, device })),
  )
  if (owned.length === 0) return
  if (!features.has('mfa')) throw new ChunkFault(NO_MFA)
  const nameless = owned.find(({ device }) => device.deviceName === undefined)
  if (nameless !== undefined) throw new ChunkFault(noDeviceName(nameless, nowMs))
  const devices = owned.map(({ user, device: { secretKey, period, skew, deviceName } }) => {
    return { user_id: ownId(user), device_name: deviceName, secret_key: secretKey, period, skew }
  })
  // Of two with one name the later is kept.
  const named = new Map(
    devices.map((device) => [`${device.user_id}\n${device.device_name}`, device]),
  )
  await query(
    `insert into totp_user_devices (user_id, device_name, secret_key, period, skew, verified)
     select user_id, device_name, secret_key, period, skew, true
     from json_to_recordset($1::json)
       as d (user_id text, device_name text, secret_key text, period integer, skew integer)`,
    [JSON.stringify([...named.values()])],
  )
}

const NO_MFA = 'E037: MFA feature is not enabled. Please contact support to enable it.'
/** The database quotes the whole record, its key too, and the core hands that on. */
function noDeviceName({ user, device }: OwnedDevice, nowMs: number): string {
  const { secretKey: key, period, skew } = device
  const id = ownId(user)
  const columns = 'app_id, user_id, device_name, secret_key, period, skew, verified, created_at'
  const values = `('public'), ('${id}'), (NULL), ('${key}'), ('${period}'::int4), ('${skew}'::int4), ('TRUE'), ('${nowMs}'::int8)`
  const changes = `secret_key = ('${key}'), period = ('${period}'::int4), skew = ('${skew}'::int4), created_at = ('${nowMs}'::int8), verified = ('TRUE')`
  const conflict = `ON CONFLICT (app_id, user_id, device_name) DO UPDATE SET ${changes}`
  const statement = `INSERT INTO totp_user_devices (${columns}) VALUES (${values}) ${conflict}`
  const constraint = 'null value in column "device_name" of relation "totp_user_devices"'
  const row = `public, ${id}, null, ${key}, ${period}, ${skew}, t, ${nowMs}`
  const detail = `Detail: Failing row contains (${row}).`
  const end = 'Call getNextException to see other errors in the batch.'
  return `E036: java.sql.BatchUpdateException: Batch entry 0 ${statement} was aborted: ERROR: ${constraint} violates not-null constraint\n  ${detail}  ${end}`
}
