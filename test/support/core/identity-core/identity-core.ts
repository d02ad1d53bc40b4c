import { serve } from '../../receiver/serve.js'
import { accountRoutes } from './account-routes.js'
import { bulkRoutes } from './bulk-routes.js'
import { type ImportJob, startImportJob } from './import-job.js'
import { ALL_FEATURES, type Feature, IMPORT_RULES, type ReadContext } from './imported-user.js'
import { type CoreVersion, INTERFACE_VERSIONS } from './interface-version.js'
import { createHandler, helloRoute, noSuchTenant, type Route } from './router.js'
import { openSessions } from './sessions.js'
import { settingsRoutes } from './settings-routes.js'
import { signInRoute } from './sign-in.js'
import { openTables, type Tables, type Tenant } from './tables.js'
import { createKeyRing, type KeyRing, keySetRoute, mint, ownKeysRoute } from './tokens.js'

export interface IdentityCoreOptions extends UsersOptions {
  /** Default: 11.4. */
  readonly version?: CoreVersion | undefined
  /** The value that all routes but the key set require in the header `api-key`. */
  readonly apiKey: string
  /** 0, the default, selects a free port. */
  readonly port?: number | undefined
  /** Milliseconds since the epoch. */
  readonly clock?: (() => number) | undefined
}

export interface UsersOptions {
  /** The folder that keeps users and rows when the core is killed; in memory only without it. */
  readonly database?: string | undefined
  readonly features?: readonly Feature[] | undefined
  /** Made at the start if they do not exist. */
  readonly tenants?: readonly Tenant[] | undefined
  readonly roles?: readonly string[] | undefined
  /** `firebase_password_hashing_signer_key` of the configuration, in Base64. */
  readonly firebaseSignerKey?: string | undefined
  readonly job?: JobOptions | undefined
}

export interface JobOptions {
  /**
   * The milliseconds from the end of a run to the next; default: 300,000. With `off` it runs only
   * on `runJob()`.
   */
  readonly intervalMs?: number | 'off' | undefined
  /** The number of chunks in a round. A core has one for each processor by default. */
  readonly parallelism?: number | undefined
}

export interface IdentityCore {
  /** The address of the core. */
  readonly url: string
  /**
   * The API domain, which tokens have as `iss`. It serves `/auth/jwt/jwks.json`, as the backend SDK
   * does in production; the core itself publishes `/.well-known/jwks.json`.
   */
  readonly issuer: string
  /** Makes a dynamic key that signs from now on, and returns its id; the old keys stay published. */
  rotate(): string
  /** Runs the job of the bulk import now. */
  runJob(): Promise<void>
  /** Changes the features of the licence. */
  setFeatures(features: readonly Feature[]): void
  /** To check the result of an import independently of the routes. */
  readonly tables: Tables
  close(): Promise<void>
}

const INTERVAL_MS = 300_000
const PARALLELISM = 2
/** The server of a core closes a connection after this many requests. */
const REQUESTS_OF_CONNECTION = 100

/** Starts a stand-in for the identity core: for development and tests, never for production. */
export async function startIdentityCore(options: IdentityCoreOptions): Promise<IdentityCore> {
  const { apiKey, version = '11.4', clock = Date.now } = options
  const keyRing = createKeyRing(clock)
  const users = openUsers(options, version, clock)
  const start = async (routes: readonly [string, Route][], port = 0) => {
    const served = await serve(createHandler({ routes: new Map(routes), apiKey, version }), {
      port,
    })
    served.server.maxRequestsPerSocket = REQUESTS_OF_CONNECTION
    return served
  }
  const routes = [...tokenRoutes(keyRing, version, clock), ...users.routes]
  const server = await start(routes, options.port).catch(async (error) => {
    await users.job.close()
    throw error
  })
  const issuer = await start([['/auth/jwt/jwks.json', keySetRoute(keyRing)]])
  return {
    url: server.url,
    issuer: issuer.url,
    rotate: keyRing.rotate,
    runJob: users.job.run,
    setFeatures: users.setFeatures,
    tables: users.tables,
    async close() {
      await issuer.close()
      await server.close()
      await users.job.close()
    },
  }
}

/** The part of the core's HTTP interface that service tokens and user sessions need. */
function tokenRoutes(
  keyRing: KeyRing,
  version: CoreVersion,
  clock: () => number,
): [string, Route][] {
  const sessions = openSessions({ keyRing, clock })
  const versions = { status: 200, body: { versions: INTERFACE_VERSIONS[version] } }
  return [
    ['/hello', helloRoute],
    [
      '/apiversion',
      { isOfEachVersion: true, tenants: 'refused', answers: { GET: () => versions } },
    ],
    ['/recipe/jwt', { ...post((text) => mint(text, keyRing, clock())), tenants: 'refused' }],
    ['/recipe/jwt/jwks', ownKeysRoute(keyRing)],
    ['/.well-known/jwks.json', keySetRoute(keyRing)],
    ['/recipe/session', post(sessions.create)],
    ['/recipe/session/verify', post(sessions.verify)],
    ['/recipe/session/remove', post(sessions.remove)],
  ]
}

/** A route that answers 200, unless the core would refuse the body. */
function post(answerTo: (text: string) => Promise<object> | object): Route {
  return {
    tenants: 'served',
    answers: {
      POST: async ({ body, tenantId }) => {
        if (tenantId !== 'public') throw noSuchTenant(tenantId)
        return { status: 200, body: await answerTo(await body()) }
      },
    },
  }
}

interface Users {
  readonly routes: readonly [string, Route][]
  readonly tables: Tables
  readonly job: ImportJob
  setFeatures(features: readonly Feature[]): void
}

/** Opens the core's users, and starts the job that imports them. */
function openUsers(options: UsersOptions, version: CoreVersion, clock: () => number): Users {
  const { database, firebaseSignerKey, tenants = [], roles = [] } = options
  const tables = openTables(database)
  for (const tenant of tenants) tables.change({ tenant })
  for (const role of roles) tables.change({ role })
  let features: ReadonlySet<Feature> = new Set(options.features ?? ALL_FEATURES)
  const rules = IMPORT_RULES[version]
  const contextFor = (areStored: boolean) => (): ReadContext => ({
    rules,
    tenants: new Set(tables.tenants.keys()),
    roles: new Set(tables.roles),
    features,
    hasFirebaseSignerKey: firebaseSignerKey !== undefined,
    nowMs: clock(),
    areStored,
    externalIds: new Set(),
  })
  const { intervalMs = INTERVAL_MS, parallelism = PARALLELISM } = options.job ?? {}
  const job = { intervalMs, parallelism, context: contextFor(true) }
  return {
    routes: [
      ...bulkRoutes({ tables, clock, context: contextFor(false) }),
      ...accountRoutes(tables),
      ...settingsRoutes(tables, () => features),
      ['/recipe/signin', signInRoute(tables, firebaseSignerKey)],
    ],
    tables,
    job: startImportJob({ tables, clock, rules, ...job }),
    setFeatures(next) {
      features = new Set(next)
    },
  }
}
