import {
  flag,
  functionOf,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { ApiKey } from '../../client/core/api-key.js'
import { apiKeyOption, baseUrlFaults } from '../../client/core/core-options.js'
import type { CallOptions, CoreClient } from './core-client.js'
import type { Operation } from './core-operation.js'
import * as lookUps from './look-up-operations.js'
import { ask, askPatiently, type Reach } from './send-request.js'
import * as staging from './staging-operations.js'
import { allRows } from './staging-operations.js'

/** Options of `coreClient`. */
export interface CoreClientOptions {
  /** An `https:` URL, or `http:` on loopback. May have a path, but no user name, query or fragment. */
  readonly baseUrl: string
  /**
   * 1 to 1024 visible ASCII characters, or a function that returns them. The function is called before each
   * request, and once more after a 401.
   */
  readonly apiKey: ApiKey
  /** Allows `http:` for other hosts than loopback. Default: `false`. */
  readonly allowInsecureHttp?: boolean | undefined
  /** Milliseconds for one attempt, including the key function and the body, 1 to 300,000. Default: 10,000. */
  readonly timeoutMs?: number | undefined
  /** The time limit for staging and direct import instead, 1 to 300,000 ms. Default: 120,000. */
  readonly stageTimeoutMs?: number | undefined
  /** A `fetch` that neither retries nor follows redirects. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

const timeLimit = () => numberBetween(1, 300_000, 'milliseconds')

const schema = optionsObject({
  baseUrl: nonEmptyString(),
  apiKey: apiKeyOption(),
  allowInsecureHttp: flag().default(false),
  timeoutMs: timeLimit().default(10_000),
  stageTimeoutMs: timeLimit().default(120_000),
  fetch: functionOf<typeof globalThis.fetch>().optional(),
})

/**
 * Creates a client of an identity core with the operations that a migration needs. It sends no request by
 * itself. It does not follow redirects, which would expose the API key. Neither errors nor results contain
 * the key or secrets of users.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of range.
 */
export function coreClient(options: CoreClientOptions): CoreClient {
  const { baseUrl, apiKey, timeoutMs, stageTimeoutMs, ...parsed } = parseOptions(
    'coreClient options',
    schema,
    options,
    (input) =>
      baseUrlFaults('baseUrl', {
        baseUrl: input['baseUrl'],
        allowInsecureHttp: input['allowInsecureHttp'],
      }),
  )
  const fetch = parsed.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const core = { baseUrl, apiKey, fetch }
  const reach = { core, timeoutMs: { usual: timeoutMs, staging: stageTimeoutMs } }
  const client = clientOf(reach, ask)
  reaches.set(client, reach)
  return client
}

const reaches = new WeakMap<CoreClient, Reach>()

/** Returns a client that waits while the core is busy, for a run. A custom client is returned unchanged. */
export function patientClient(client: CoreClient): CoreClient {
  const reach = reaches.get(client)
  return reach === undefined ? client : clientOf(reach, askPatiently)
}

function clientOf(reach: Reach, askCore: typeof ask): CoreClient {
  const run = <T>(operation: Operation<T>, options: CallOptions | undefined): Promise<T> =>
    askCore(reach, operation, options?.signal)

  // All functions are asynchronous, so that they reject instead of throwing.
  return Object.freeze({
    baseUrl: reach.core.baseUrl,
    stageUsers: async (users, options) => run(staging.stage(users), options),
    importUser: async (user, options) => run(staging.importDirectly(user), options),
    listRows: async (query, options) => run(staging.listRows(query ?? {}), options),
    rows: (status, options) =>
      allRows(async (query) => run(staging.listRowsThatFit(query), options), status),
    countRows: async (status, options) => run(staging.countRows(status), options),
    deleteRows: async (ids, options) => run(staging.deleteRows(ids), options),
    coreIdOf: async (id, options) => run(lookUps.findCoreId(id), options),
    user: async (userId, options) => run(lookUps.findUser(userId), options),
    usersWith: async (tenantId, info, options) =>
      run(lookUps.findUsersWith(tenantId, info), options),
    rolesOf: async (tenantId, userId, options) =>
      run(lookUps.findRolesOf(tenantId, userId), options),
    metadataOf: async (userId, options) => run(lookUps.findMetadataOf(userId), options),
    totpDevicesOf: async (userId, options) => run(lookUps.findTotpDevicesOf(userId), options),
    tenants: async (options) => run(lookUps.listTenants(), options),
    roles: async (options) => run(lookUps.listRoles(), options),
    features: async (options) => run(lookUps.listFeatures(), options),
  } satisfies CoreClient)
}
