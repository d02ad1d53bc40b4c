import { listen } from '../listen.js'
import type { CoreVersion } from './interface-version.js'
import { openKeyRing, type PublishedKey } from './key-ring.js'
import { createKeySetGate } from './key-set-gate.js'
import { scheduleFor } from './rotation.js'
import { createHandler, type Route } from './router.js'
import { keySetRoute, tokenRoutes } from './routes.js'
import type { PublicJwk } from './signing-key.js'
import { inMemoryRoutes } from './users/bulk-routes.js'
import type { Query } from './users/database.js'
import type { JobFaults } from './users/import-job.js'
import type { Feature } from './users/imported-user.js'
import { openUsers, type UsersOptions } from './users/users.js'

export interface IdentityCoreOptions {
  /** Default: 11.4. */
  readonly version?: CoreVersion | undefined
  /** The value that `POST /recipe/jwt` and `GET /apiversion` require in the header `api-key`. */
  readonly apiKey: string
  /** 0, the default, selects a free port. */
  readonly port?: number
  /** The port of `issuer`. 0, the default, selects a free port. */
  readonly issuerPort?: number
  /** The seconds for which a dynamic key signs; the core's default is a week. */
  readonly rotationSeconds?: number
  /** The file that keeps the keys across restarts; without it they are in memory only. */
  readonly keysFile?: string
  /**
   * The users, and their bulk import. Without it nothing is stored, and the five operations of the
   * import answer like a core whose database is in memory.
   */
  readonly users?: UsersOptions
  /** Milliseconds since the epoch. */
  readonly clock?: () => number
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
  rotate(): Promise<string>
  /** Removes a key from use and from the published set; returns whether it was there. */
  withdraw(kid: string): Promise<boolean>
  /** Makes the key set (nothing else) answer 503 or close the connection, or serves it again. */
  setDown(down: boolean, how?: 'unavailable' | 'hang-up'): void
  /** Delays the answers of the key set (nothing else) by this many milliseconds. */
  setSlow(milliseconds: number): void
  /** The number of requests for the key set, including those during outages. */
  keySetRequests(): number
  /** Its own published keys, newest first, then the static ones. */
  keys(): readonly PublishedKey[]
  /**
   * From now on, publishes keys of others with its own: the holders of those keys can sign in its
   * name.
   * @throws {TypeError} if a key id is already published
   */
  publishAlso(keys: readonly PublicJwk[]): void
  /** Runs the job of the bulk import now. */
  runJob(faults?: JobFaults): Promise<void>
  /** Changes the features of the licence. */
  setFeatures(features: readonly Feature[]): void
  /** Queries the tables, to check the result of an import independently of the routes. */
  readonly query: Query
  close(): Promise<void>
}

export const WEEK_SECONDS = 604_800

/** The server of a core closes a connection after this many requests. */
const CONNECTIONS = { maxRequestsPerSocket: 100 }

/** Starts a stand-in for the identity core: for development and tests, never for production. */
export async function startIdentityCore(options: IdentityCoreOptions): Promise<IdentityCore> {
  const { apiKey, port = 0, issuerPort = 0, rotationSeconds = WEEK_SECONDS, keysFile } = options
  const { version = '11.4', clock = Date.now } = options
  if (apiKey === '') throw new TypeError('apiKey must not be empty')
  const keyRing = await openKeyRing({ schedule: scheduleFor(rotationSeconds), clock, keysFile })
  const keySetGate = createKeySetGate()
  const users = options.users && (await openUsers(options.users, { version, clock }))
  const parts = { version, keyRing, clock, onKeySetRequest: keySetGate.pass }
  const serve = (routes: [string, Route][], at: number) =>
    listen(createHandler({ routes: new Map(routes), apiKey, version }), at, CONNECTIONS)
  const routes = [...tokenRoutes(parts), ...(users?.routes ?? withoutUsers())]
  const server = await serve(routes, port).catch(closing(users))
  const apiDomain: [string, Route][] = [['/auth/jwt/jwks.json', keySetRoute(parts)]]
  const issuer = await serve(apiDomain, issuerPort).catch(closing(server, users))
  const kept = () => {
    if (users === undefined) throw new Error('the core was started without users')
    return users
  }
  return {
    url: server.url,
    issuer: issuer.url,
    rotate: keyRing.rotate,
    withdraw: keyRing.withdraw,
    setDown: (down, how = 'unavailable') => keySetGate.setAnswer(down ? how : 'serve'),
    setSlow: keySetGate.setDelay,
    keySetRequests: keySetGate.requests,
    keys: keyRing.published,
    publishAlso: keyRing.publishAlso,
    runJob: (faults) => kept().job.run(faults),
    setFeatures: (features) => kept().setFeatures(features),
    query: (sql, parameters) => kept().query(sql, parameters),
    async close() {
      await issuer.close()
      await server.close()
      await users?.close()
    },
  }
}

/** Closes the services opened before a failure, and throws the failure again. */
function closing(...opened: ({ close(): Promise<void> } | undefined)[]) {
  return async (error: unknown): Promise<never> => {
    for (const each of opened) await each?.close()
    throw error
  }
}

function withoutUsers(): [string, Route][] {
  const unknown = () => ({ status: 200, body: { status: 'UNKNOWN_USER_ID_ERROR' } })
  // The SDK then takes the id that it was given for the session's user.
  return [...inMemoryRoutes(), ['/user/id', { tenants: 'refused', answers: { GET: unknown } }]]
}
