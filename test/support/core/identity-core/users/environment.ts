import { integerFrom, textFrom } from '../../environment.js'
import { StartError } from '../../start-error.js'
import type { JobFaults } from './import-job.js'
import type { Feature } from './imported-user.js'
import { ALL_FEATURES, type JobOptions, type UsersOptions } from './users.js'

const DAY_MS = 86_400_000
const MAX_PARALLELISM = 64
const DEFAULT_INTERVAL_MS = 300_000
const DEFAULT_PARALLELISM = 2

/**
 * The users of a core that is started from the command line; none without a database folder.
 * @throws {StartError} if a variable is invalid
 */
export function usersFromEnvironment(): { users?: UsersOptions } {
  const database = textFrom('IDENTITY_CORE_DATABASE')
  if (database === undefined) return {}
  const tenants = listFrom('IDENTITY_CORE_TENANTS').map((tenantId) => {
    return { tenantId: tenantId.toLowerCase(), thirdPartyIds: [] }
  })
  const roles = listFrom('IDENTITY_CORE_ROLES')
  return { users: { database, tenants, roles, features: features(), job: jobFromEnvironment() } }
}

function features(): readonly Feature[] {
  if (process.env['IDENTITY_CORE_FEATURES'] === undefined) return ALL_FEATURES
  return listFrom('IDENTITY_CORE_FEATURES').map((name) => {
    const feature = ALL_FEATURES.find((known) => known === name)
    if (feature !== undefined) return feature
    throw new StartError(`IDENTITY_CORE_FEATURES must be of ${ALL_FEATURES.join(', ')}`)
  })
}

/** The job's switch and its number of chunks have the names of the core's own settings. */
function jobFromEnvironment(): JobOptions {
  const interval = integerFrom('BULK_IMPORT_INTERVAL_MS', DEFAULT_INTERVAL_MS, {
    min: 1,
    max: DAY_MS,
  })
  const parallelism = integerFrom('BULK_MIGRATION_PARALLELISM', DEFAULT_PARALLELISM, {
    min: 1,
    max: MAX_PARALLELISM,
  })
  const isOff = textFrom('BULK_MIGRATION_CRON_ENABLED') === 'false'
  return { intervalMs: isOff ? 'off' : interval, parallelism, faults: faults() }
}

function faults(): JobFaults {
  const crash = textFrom('BULK_IMPORT_CRASH')
  if (crash === undefined) return {}
  if (crash !== 'before-delete') throw new StartError('BULK_IMPORT_CRASH must be before-delete')
  return { beforeDelete: () => process.kill(process.pid, 'SIGKILL') }
}

/** Reads names that are separated by commas. */
function listFrom(name: string): string[] {
  const names = (textFrom(name) ?? '').split(',').map((part) => part.trim())
  return names.filter((part) => part !== '')
}
