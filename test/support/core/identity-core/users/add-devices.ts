import type { Query } from './database.js'
import { batchText, isStorable, nulText, STATEMENTS_OF_BATCH, valuesText } from './database-text.js'
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
  for (const [position, one] of owned.entries()) {
    const error = errorOf(one, nowMs)
    if (error === undefined) continue
    throw new ChunkFault(textOf(one, position % STATEMENTS_OF_BATCH, error, nowMs))
  }
  const devices = owned.map(({ user, device: { secretKey, period, skew, deviceName } }) => {
    return { user_id: ownId(user), device_name: deviceName, secret_key: secretKey, period, skew }
  })
  // If two devices have the same name, the core stores the later one.
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

/** The core's error quotes the whole statement, including the device's secret key. */
function textOf({ user, device }: OwnedDevice, entry: number, error: string, nowMs: number) {
  const { secretKey, period, skew, deviceName } = device
  const columns = 'app_id, user_id, device_name, secret_key, period, skew, verified, created_at'
  const texts = valuesText(['public', ownId(user), deviceName, secretKey])
  const numbers = `('${period}'::int4), ('${skew}'::int4), ('TRUE'), ('${nowMs}'::int8)`
  const key = valuesText([secretKey])
  const changes = `secret_key = ${key}, period = ('${period}'::int4), skew = ('${skew}'::int4), created_at = ('${nowMs}'::int8), verified = ('TRUE')`
  const conflict = `ON CONFLICT (app_id, user_id, device_name) DO UPDATE SET ${changes}`
  const statement = `INSERT INTO totp_user_devices (${columns}) VALUES (${texts}, ${numbers}) ${conflict}`
  return `E036: ${batchText({ entry, statement, error })}`
}

/** The error with which the database rejects the device. */
function errorOf({ user, device }: OwnedDevice, nowMs: number): string | undefined {
  const { secretKey, period, skew, deviceName } = device
  if (!isStorable(deviceName)) return nulText(NAME_PARAMETER)
  if (!isStorable(secretKey)) return nulText(NAME_PARAMETER + 1)
  if (deviceName !== undefined) return undefined
  const constraint = 'null value in column "device_name" of relation "totp_user_devices"'
  const row = `public, ${ownId(user)}, null, ${secretKey}, ${period}, ${skew}, t, ${nowMs}`
  const detail = `Detail: Failing row contains (${row}).`
  return `${constraint} violates not-null constraint\n  ${detail}`
}

const NAME_PARAMETER = 3
