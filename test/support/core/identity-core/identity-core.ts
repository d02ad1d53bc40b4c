import { mintToken, parseMintRequest } from '../../../../src/testing/core/mint.js'
import { createKeyRing, type KeyRing } from '../../../../src/testing/issuer/issuer-keys.js'
import { takeKey } from '../../issuer/spare-keys.js'
import { serve } from '../../receiver/serve.js'
import { accountRoutes } from './accounts.js'
import { bulkRoutes } from './bulk-routes.js'
import { startImportJob } from './import-job.js'
import { ALL_FEATURES, type Feature, IMPORT_RULES, type ReadContext } from './imported-user.js'
import { type CoreVersion, INTERFACE_VERSIONS } from './interface-version.js'
import { createHandler, type Gate, type Route, type Routes } from './router.js'
import { sessionRoutes } from './sessions.js'
import { settingsRoutes } from './settings-routes.js'
import { signInRoute } from './sign-in.js'
import { openTables, type Tables } from './tables.js'

export interface IdentityCoreOptions {
  /** Default: 11.4. */
  readonly version?: CoreVersion | undefined
  /** The value that all routes but the key set require in the header `api-key`. */
  readonly apiKey?: string | undefined
  /** 0, the default, selects a free port. */
  readonly port?: number | undefined
  /** Milliseconds since the epoch. */
  readonly clock?: (() => number) | undefined
  /** The folder that keeps users and rows when the core is killed; in memory only without it. */
  readonly database?: string | undefined
  /** Made at the start if they do not exist, like the roles. */
  readonly tenants?: readonly string[] | undefined
  readonly roles?: readonly string[] | undefined
  /** Whether its configuration has a `firebase_password_hashing_signer_key`. */
  readonly hasFirebaseSignerKey?: boolean | undefined
  readonly job?: JobOptions | undefined
  /** Of all routes of the core. */
  readonly gate?: Gate | undefined
}

export interface JobOptions {
  /**
   * The milliseconds from the end of a run to the next; default: 300,000. With `off` it runs only
   * on `runJob()`.
   */
  readonly intervalMs?: number | 'off' | undefined
}

export interface IdentityCore {
  /** The address of the core. */
  readonly url: string
  readonly apiKey: string
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

const API_KEY = 'the-key-of-the-stand-in-core'
const INTERVAL_MS = 300_000
/** The server of a core closes a connection after this many requests. */
const REQUESTS_OF_CONNECTION = 100

/** Starts a stand-in for the identity core: for development and tests, never for production. */
export async function startIdentityCore(options: IdentityCoreOptions = {}): Promise<IdentityCore> {
  const { apiKey = API_KEY, version = '11.4', clock = Date.now } = options
  const { database, hasFirebaseSignerKey = false, tenants = [], roles = [], gate } = options
  const tables = openTables(database)
  for (const tenant of tenants) tables.change({ tenant })
  for (const role of roles) tables.change({ role })
  let features: ReadonlySet<Feature> = new Set(ALL_FEATURES)
  const rules = IMPORT_RULES[version]
  const context = (areStored: boolean) => (): ReadContext => {
    const { tenants, roles } = tables
    const settings = { rules, features, hasFirebaseSignerKey, nowMs: clock() }
    return { ...settings, tenants, roles, areStored, externalIds: new Set() }
  }
  const { intervalMs = INTERVAL_MS } = options.job ?? {}
  const job = startImportJob({ tables, clock, rules, intervalMs, context: context(true) })
  const keyRing = createKeyRing(takeKey)
  const start = async (routes: Routes, port = 0) => {
    const served = await serve(createHandler({ routes, apiKey, gate }), { port })
    served.server.maxRequestsPerSocket = REQUESTS_OF_CONNECTION
    return served
  }
  const routes = {
    ...tokenRoutes(keyRing, version, clock),
    ...sessionRoutes(keyRing, clock),
    ...bulkRoutes({ tables, clock, context: context(false) }),
    ...accountRoutes(tables),
    ...settingsRoutes(tables, () => features),
    'POST /recipe/signin': signInRoute(tables),
  }
  const server = await start(routes, options.port).catch(async (error) => {
    await job.close()
    throw error
  })
  const issuer = await start({ 'GET /auth/jwt/jwks.json': keySetRoute(keyRing) })
  return {
    url: server.url,
    apiKey,
    issuer: issuer.url,
    rotate: () => keyRing.rotate().kid,
    runJob: job.run,
    setFeatures(next) {
      features = new Set(next)
    },
    tables,
    async close() {
      await issuer.close()
      await server.close()
      await job.close()
    },
  }
}

/** The part of the core's HTTP interface that service tokens need. */
function tokenRoutes(keyRing: KeyRing, version: CoreVersion, clock: () => number): Routes {
  return {
    'GET /hello': { isPublic: true, isPerTenant: true, answer: () => 'Hello' },
    'GET /apiversion': { answer: () => ({ versions: INTERFACE_VERSIONS[version] }) },
    'GET /.well-known/jwks.json': keySetRoute(keyRing),
    'POST /recipe/jwt': {
      answer: ({ body }) => mintToken(parseMintRequest(body), keyRing, clock()),
    },
  }
}

/** Nearly a week, like a core whose key is new. */
const CACHE_CONTROL = 'max-age=604740, must-revalidate'

/** The key set: dynamic keys, newest first, then the static one. */
function keySetRoute(keyRing: KeyRing): Route {
  const answer = () => ({ keys: keyRing.document().keys.toReversed() })
  return { isPublic: true, isPerTenant: true, headers: { 'cache-control': CACHE_CONTROL }, answer }
}
