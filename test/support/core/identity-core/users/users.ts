import type { CoreVersion } from '../interface-version.js'
import type { Route } from '../router.js'
import { accountRoutes } from './account-routes.js'
import { bulkRoutes } from './bulk-routes.js'
import { openDatabase, type Query } from './database.js'
import { type ImportJob, type JobFaults, startImportJob } from './import-job.js'
import { IMPORT_RULES } from './import-rules.js'
import type { Feature, ReadContext } from './imported-user.js'
import { settingsRoutes } from './settings-routes.js'
import { signInRoute } from './sign-in.js'
import { listRoles, listTenants, putTenant, type Tenant } from './tenants.js'

/** The default features of the licence: all that matter to a migration. */
export const ALL_FEATURES: readonly Feature[] = ['account_linking', 'multi_tenancy', 'mfa']

export interface UsersOptions {
  /** The folder for the users and the rows to be imported. One process at a time owns it. */
  readonly database: string
  readonly features?: readonly Feature[] | undefined
  /** Made at the start if they do not exist. */
  readonly tenants?: readonly Tenant[] | undefined
  readonly roles?: readonly string[] | undefined
  /** `firebase_password_hashing_signer_key` of the configuration, in Base64. */
  readonly firebaseSignerKey?: string | undefined
  /** Whether the answer to staging lists the staged users, as since 10.1.1. */
  readonly listsStagedUsers?: boolean | undefined
  /** A body limit like that of a proxy in front of the core, for the five operations; none by default. */
  readonly largestBodyBytes?: number | undefined
  readonly job?: JobOptions | undefined
}

/** The core to which the users belong. */
export interface UsersCore {
  readonly version: CoreVersion
  readonly clock: () => number
}

export interface JobOptions {
  /**
   * The milliseconds from the end of a run to the next; default: 300,000. With `off` it runs only
   * on `run()`.
   */
  readonly intervalMs?: number | 'off' | undefined
  /** The number of chunks in a round. A core has one for each processor by default. */
  readonly parallelism?: number | undefined
  readonly faults?: JobFaults | undefined
}

export interface Users {
  readonly routes: readonly [string, Route][]
  readonly query: Query
  readonly job: ImportJob
  setFeatures(features: readonly Feature[]): void
  close(): Promise<void>
}

const INTERVAL_MS = 300_000
const PARALLELISM = 2

/** Opens the core's users, in their own database, and starts the job that imports them. */
export async function openUsers(
  options: UsersOptions,
  { version, clock }: UsersCore,
): Promise<Users> {
  const { firebaseSignerKey, listsStagedUsers = true, largestBodyBytes } = options
  const database = await openDatabase(options.database)
  const { query } = database
  let features: ReadonlySet<Feature> = new Set(options.features ?? ALL_FEATURES)
  const held = () => features
  const rules = IMPORT_RULES[version]

  const contextFor =
    (areStored: boolean) =>
    async (on: Query): Promise<ReadContext> => ({
      rules,
      tenants: new Set((await listTenants(on)).map(({ tenantId }) => tenantId)),
      roles: new Set(await listRoles(on)),
      features,
      hasFirebaseSignerKey: firebaseSignerKey !== undefined,
      nowMs: clock(),
      areStored,
      externalIds: new Set(),
    })

  for (const tenant of options.tenants ?? []) await putTenant(query, tenant)
  for (const role of options.roles ?? []) {
    await query('insert into roles (role) values ($1) on conflict do nothing', [role])
  }
  const { intervalMs = INTERVAL_MS, parallelism = PARALLELISM, faults } = options.job ?? {}
  const common = { database, clock }
  const job = startImportJob({
    ...common,
    contextFor: contextFor(true),
    rules,
    parallelism,
    intervalMs,
    faults,
  })
  const bulk = bulkRoutes({
    ...common,
    contextFor: contextFor(false),
    listsStagedUsers,
    largestBodyBytes,
  })
  return {
    routes: [
      ...bulk,
      ...accountRoutes(database),
      ...settingsRoutes(query, held),
      ['/recipe/signin', signInRoute(query, firebaseSignerKey)],
    ],
    query,
    job,
    setFeatures(next) {
      features = new Set(next)
    },
    async close() {
      await job.close()
      await database.close()
    },
  }
}
