import {
  flag,
  functionOf,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { type ApiKey, apiKeyOption, baseUrlFaults } from '../../client/core/core-options.js'
import type { CallOptions, CoreClient, RowQuery, RowStatus, StagedRow } from './core-client.js'
import { CoreError } from './core-error.js'
import type { Operation } from './core-operation.js'
import * as lookUps from './look-up-operations.js'
import { ask, askPatiently, type Reach } from './send-request.js'
import * as staging from './staging-operations.js'

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

/** The time limits in milliseconds, with their defaults. */
export const CLIENT_NUMBERS = {
  timeoutMs: { min: 1, max: 300_000, default: 10_000 },
  stageTimeoutMs: { min: 1, max: 300_000, default: 120_000 },
} as const

const timeLimit = ({
  min,
  max,
  default: usual,
}: (typeof CLIENT_NUMBERS)['timeoutMs' | 'stageTimeoutMs']) =>
  numberBetween(min, max, 'milliseconds').default(usual)

const schema = lazy(() =>
  optionsObject({
    baseUrl: nonEmptyString(),
    apiKey: apiKeyOption(),
    allowInsecureHttp: flag().default(false),
    timeoutMs: timeLimit(CLIENT_NUMBERS.timeoutMs),
    stageTimeoutMs: timeLimit(CLIENT_NUMBERS.stageTimeoutMs),
    fetch: functionOf<typeof globalThis.fetch>().optional(),
  }),
)

/**
 * Creates a client of an identity core with the operations that a migration needs. It sends no request by
 * itself. It does not follow redirects, which would expose the API key. Neither errors nor results contain
 * the key or secrets of users.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of range.
 *
 * @example
 * ```ts
 * import { coreClient } from 'express-service-auth/migration'
 *
 * const core = coreClient({
 *   baseUrl: process.env['CORE_URL'] ?? 'http://127.0.0.1:3567',
 *   apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key',
 * })
 * console.log(await core.countRows()) // 0
 * ```
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

/** The core's limit of rows per page. */
const MAX_ROWS = 500

/** Reads a page. Resolves with `too_large` if the page must be requested with fewer rows. */
type PageOf = (
  query: RowQuery & { readonly limit: number },
) => Promise<staging.RowPage | 'too_large'>

/**
 * Yields the rows of all pages. A page that is too large is requested again with half the rows.
 *
 * @throws CoreError if the pages do not end.
 */
async function* allRows(
  pageOf: PageOf,
  status: RowStatus | undefined,
): AsyncGenerator<StagedRow, void, undefined> {
  const tokens = new Set<string>()
  let limit = MAX_ROWS
  let paginationToken: string | undefined
  for (;;) {
    const page = await pageOf({
      limit,
      ...(status !== undefined && { status }),
      ...(paginationToken !== undefined && { paginationToken }),
    })
    if (page === 'too_large') {
      if (limit === 1) throw leadsNowhere('one row is too large')
      limit = Math.floor(limit / 2)
      continue
    }
    yield* page.users
    paginationToken = page.nextPaginationToken
    if (paginationToken === undefined) return
    if (page.users.length === 0) throw leadsNowhere('a page has no rows and is not the last')
    if (tokens.has(paginationToken)) throw leadsNowhere('the pages of rows begin again')
    tokens.add(paginationToken)
  }
}

const leadsNowhere = (why: string): CoreError =>
  new CoreError(`GET /bulk-import/users: ${why}`, {
    code: 'malformed_reply',
    outcome: 'refused',
    status: 200,
  })
