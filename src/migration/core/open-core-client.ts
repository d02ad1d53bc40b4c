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
import { ask, askPatiently, type CoreAccess } from './send-request.js'
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
  /** Like `timeoutMs`, for an attempt to stage or import directly: milliseconds, 1 to 300,000. Default: 120,000. */
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
  default: fallback,
}: (typeof CLIENT_NUMBERS)['timeoutMs' | 'stageTimeoutMs']) =>
  numberBetween(min, max, 'milliseconds').default(fallback)

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
  const access = { core, timeoutMs: { default: timeoutMs, staging: stageTimeoutMs } }
  const client = clientOf(access, ask)
  accesses.set(client, access)
  return client
}

const accesses = new WeakMap<CoreClient, CoreAccess>()

/** Returns a client that waits while the core is busy, for a run. A custom client is returned unchanged. */
export function patientClient(client: CoreClient): CoreClient {
  const access = accesses.get(client)
  return access === undefined ? client : clientOf(access, askPatiently)
}

function clientOf(access: CoreAccess, askCore: typeof ask): CoreClient {
  const perform = <T>(operation: Operation<T>, options: CallOptions | undefined): Promise<T> =>
    askCore(access, operation, options?.signal)

  // The functions are `async`, so that an invalid argument makes them reject instead of throw.
  return Object.freeze({
    baseUrl: access.core.baseUrl,
    stageUsers: async (users, options) => perform(staging.stage(users), options),
    importUser: async (user, options) => perform(staging.importDirectly(user), options),
    listRows: async (query, options) => perform(staging.listRows(query ?? {}), options),
    rows: (status, options) =>
      allRows(async (query) => perform(staging.listRowsThatFit(query), options), status),
    countRows: async (status, options) => perform(staging.countRows(status), options),
    deleteRows: async (ids, options) => perform(staging.deleteRows(ids), options),
    coreIdOf: async (id, options) => perform(lookUps.findCoreId(id), options),
    user: async (userId, options) => perform(lookUps.findUser(userId), options),
    usersWith: async (tenantId, info, options) =>
      perform(lookUps.findUsersWith(tenantId, info), options),
    rolesOf: async (tenantId, userId, options) =>
      perform(lookUps.findRolesOf(tenantId, userId), options),
    metadataOf: async (userId, options) => perform(lookUps.findMetadataOf(userId), options),
    totpDevicesOf: async (userId, options) => perform(lookUps.findTotpDevicesOf(userId), options),
    tenants: async (options) => perform(lookUps.listTenants(), options),
    roles: async (options) => perform(lookUps.listRoles(), options),
    features: async (options) => perform(lookUps.listFeatures(), options),
  } satisfies CoreClient)
}

/** The core's limit of rows per page. */
const MAX_ROWS = 500

/** Reads a page. Resolves with `too_large` if the page must be requested with fewer rows. */
type ReadPage = (
  query: RowQuery & { readonly limit: number },
) => Promise<staging.RowPage | 'too_large'>

/**
 * Yields the rows of all pages. A page that is too large is requested again with half the rows.
 *
 * @throws CoreError if one row is too large, or if the pages do not end.
 */
async function* allRows(
  readPage: ReadPage,
  status: RowStatus | undefined,
): AsyncGenerator<StagedRow, void, undefined> {
  const tokens = new Set<string>()
  let limit = MAX_ROWS
  let paginationToken: string | undefined
  for (;;) {
    const page = await readPage({
      limit,
      ...(status !== undefined && { status }),
      ...(paginationToken !== undefined && { paginationToken }),
    })
    if (page === 'too_large') {
      if (limit === 1) throw unreadablePages('one row is too large')
      limit = Math.floor(limit / 2)
      continue
    }
    yield* page.users
    paginationToken = page.nextPaginationToken
    if (paginationToken === undefined) return
    if (page.users.length === 0) throw unreadablePages('a page has no rows and is not the last')
    if (tokens.has(paginationToken)) throw unreadablePages('the pages of rows begin again')
    tokens.add(paginationToken)
  }
}

const unreadablePages = (why: string): CoreError =>
  new CoreError(`GET /bulk-import/users: ${why}`, {
    code: 'malformed_reply',
    outcome: 'refused',
    status: 200,
  })
