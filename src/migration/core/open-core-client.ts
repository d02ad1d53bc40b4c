import { parseJson } from '../../base/json.js'
import {
  flag,
  functionOf,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import {
  type Core,
  type CoreAnswer,
  callWithRetries,
  excerptOf,
  type Verdict,
} from '../../client/core/call-core.js'
import {
  type ApiKey,
  apiKeyOption,
  baseUrlFaults,
  CoreFailure,
  type CoreFailureCode,
} from '../../client/core/core-options.js'
import type { CoreClient, RowQuery, RowStatus, StagedRow } from './core-client.js'
import { CoreError, type CoreErrorCode } from './core-error.js'
import { withoutRecordValues } from './core-texts.js'
import { type CoreCall, operationsOf, urlPathOf } from './endpoints.js'

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
  const access = { core, timeoutMs, importTimeoutMs: stageTimeoutMs }
  const client = clientOf(access)
  accesses.set(client, access)
  return client
}

/** The core, and the time limits of a try in milliseconds. */
interface CoreAccess {
  readonly core: Core
  readonly timeoutMs: number
  readonly importTimeoutMs: number
  /** Waits while the core is busy, until the signal aborts. */
  readonly isPatient?: boolean
}

const accesses = new WeakMap<CoreClient, CoreAccess>()

/** Returns a client that waits while the core is busy, for a run. A custom client is returned unchanged. */
export function patientClient(client: CoreClient): CoreClient {
  const access = accesses.get(client)
  return access === undefined ? client : clientOf({ ...access, isPatient: true })
}

function clientOf(access: CoreAccess): CoreClient {
  const operations = operationsOf((call, options = {}) => askCore(access, call, options.signal))
  const rows: CoreClient['rows'] = (status, options) =>
    allRows(status, (query) => operations.listRows(query, options))
  return Object.freeze({ baseUrl: access.core.baseUrl, ...operations, rows })
}

/** The core's limit of rows per page. */
const MAX_ROWS = 500

/**
 * Yields the rows of all pages. A page that is too large is requested again with half the rows.
 *
 * @throws CoreError if one row is too large, or if the pages do not end.
 */
async function* allRows(
  status: RowStatus | undefined,
  readPage: CoreClient['listRows'],
): AsyncGenerator<StagedRow, void, undefined> {
  const tokens = new Set<string>()
  let limit = MAX_ROWS
  let query: RowQuery = status === undefined ? {} : { status }
  for (;;) {
    let page: Awaited<ReturnType<typeof readPage>>
    try {
      page = await readPage({ ...query, limit })
    } catch (error) {
      const isTooLarge = error instanceof CoreError && error.code === 'too_large'
      if (!isTooLarge || limit === 1) throw error
      limit = Math.floor(limit / 2)
      continue
    }
    yield* page.users
    const { nextPaginationToken: paginationToken } = page
    if (paginationToken === undefined) return
    if (tokens.has(paginationToken)) throw endlessPages()
    tokens.add(paginationToken)
    query = { ...query, paginationToken }
  }
}

const endlessPages = (): CoreError =>
  new CoreError('GET /bulk-import/users: the pages of rows begin again', {
    code: 'malformed_reply',
    outcome: 'refused',
    status: 200,
  })

/** 128 MiB: a page of rows repeats records, one of which may have 64 MiB. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024

/**
 * Makes a call. A read is repeated if another try may succeed, a write only if the request cannot have reached
 * the core.
 *
 * @throws CoreError, or the reason of the signal.
 */
async function askCore<T>(
  { core, timeoutMs, importTimeoutMs, isPatient }: CoreAccess,
  call: CoreCall<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  const request = {
    method: call.method,
    path: urlPathOf(call),
    headers: { accept: 'application/json' },
    ...(call.body !== undefined && { body: call.body }),
    timeoutMs: call.isImport ? importTimeoutMs : timeoutMs,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    signal,
  }
  return callWithRetries(core, request, {
    isPatient,
    judge: (end) =>
      end instanceof CoreFailure
        ? judgeFailure(end, call)
        : (readValue(end, call) ?? judgeRefusal(end, call)),
  })
}

function readValue<T>(
  { status, text }: CoreAnswer,
  call: CoreCall<T>,
): { readonly value: T } | undefined {
  if (text === undefined) return undefined
  // Ignores the media type, because the core sends JSON errors as `text/html`.
  if (status === 200) return call.read(parseJson(text))
  return status === 400 ? call.readRefusal?.(parseJson(text)) : undefined
}

const isWrite = ({ method }: CoreCall<unknown>): boolean => method !== 'GET'

const FAILURE_CODES: Readonly<Record<CoreFailureCode, CoreErrorCode>> = {
  api_key_unavailable: 'invalid_api_key',
  timeout: 'timeout',
  unreachable: 'unreachable',
}

function judgeFailure(failure: CoreFailure, call: CoreCall<unknown>): Verdict<never> {
  const code = FAILURE_CODES[failure.code]
  const outcome = isWrite(call) && failure.mayHaveArrived ? 'unknown' : 'refused'
  const why =
    code === 'invalid_api_key'
      ? 'the function `apiKey` failed or returned no valid key'
      : failure.message
  return {
    error: new CoreError(`${call.method} ${call.path}: ${why}`, { code, outcome }),
    isRepeatable: code !== 'invalid_api_key' && outcome === 'refused',
  }
}

/** Temporary errors: the core is starting, a proxy cannot reach it, or the reply was incomplete. */
const TEMPORARY: ReadonlySet<CoreErrorCode> = new Set(['server_error', 'malformed_reply'])

/** Judges an answer that is not a value of the call. */
function judgeRefusal(answer: CoreAnswer, call: CoreCall<unknown>): Verdict<never> {
  const { status } = answer
  const code = classifyAnswer(answer)
  // Only a 4xx proves that nothing was done. The core never redirects, so a redirect comes from another
  // server, which may have forwarded the request.
  const outcome = isWrite(call) && (status < 400 || status > 499) ? 'unknown' : 'refused'
  const why = `the core answered ${status}${detailOf(code, answer, call)}`
  return {
    error: new CoreError(`${call.method} ${call.path}: ${why}`, { code, outcome, status }),
    isRepeatable: !isWrite(call) && TEMPORARY.has(code),
  }
}

const CODES: Readonly<Record<number, CoreErrorCode>> = {
  401: 'invalid_api_key',
  403: 'forbidden',
  404: 'not_found',
  413: 'too_large',
  429: 'busy',
}

const isRedirect = (status: number): boolean => status >= 300 && status <= 399

const isTooLarge = (answer: CoreAnswer): boolean =>
  answer.text === undefined && answer.fault === 'too_large'

const IN_MEMORY = 'This API is not supported in the in-memory database.'
const NOT_FOUND = 'Not found'

function classifyAnswer(answer: CoreAnswer): CoreErrorCode {
  const { status, text } = answer
  if (isRedirect(status)) return 'bad_request'
  if (status === 200 && isTooLarge(answer)) return 'too_large'
  if (status === 400 && text?.trim() === IN_MEMORY) return 'in_memory_database'
  // Any other 404 is from a proxy or from a core that is starting.
  if (status === 404 && text?.trim() !== NOT_FOUND) return 'malformed_reply'
  if (status >= 400 && status <= 499) return CODES[status] ?? 'bad_request'
  return status >= 500 && status <= 599 ? 'server_error' : 'malformed_reply'
}

function detailOf(code: CoreErrorCode, answer: CoreAnswer, call: CoreCall<unknown>): string {
  if (isRedirect(answer.status)) return ', a redirect, which is not followed'
  if (isTooLarge(answer)) return `, with more than ${MAX_ANSWER_BYTES} bytes`
  switch (code) {
    case 'invalid_api_key':
      return ': it refuses the API key; check the key, or the file it is read from'
    case 'in_memory_database':
      return ': it has only an in-memory database'
    case 'malformed_reply':
      return answer.text === undefined
        ? ', and not in UTF-8'
        : ', and not in the form of this operation'
    case 'bad_request':
    case 'forbidden':
      return reasonOf(answer, call)
    default:
      return ''
  }
}

/** Returns what the core says of a mistake of the request. */
function reasonOf(answer: CoreAnswer, { query, body }: CoreCall<unknown>): string {
  if (answer.text === undefined) return ''
  const reason = withoutRecordValues(answer.reason ?? '', [query, body])
  // If only `…` is left, the text was all data.
  return /\w/.test(reason) ? `: ${excerptOf(reason)}` : ''
}
