import { AsyncResource } from 'node:async_hooks'
import { z } from 'zod'
import { isBackingOff } from '../../base/back-off.js'
import { readClock } from '../../base/clock.js'
import {
  flag,
  functionOf,
  integerBetween,
  isObject,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { type ApiKey, apiKeyOption, baseUrlFaults } from '../core/core-options.js'
import {
  type BindOption,
  bindFaults,
  bindOption,
  confirmationOf,
  createDpopKey,
  type ProofRequest,
  parseProofRequest,
} from './binding.js'
import { issuedAt, type Minting, mint, type ServiceClaims } from './mint.js'
import { afterTokenFailure, TokenSourceError } from './token-source-error.js'
import type { LastTokenFailure, TokenSourceHealth } from './token-state.js'
import * as states from './token-state.js'

/** Options of `tokenSource`. */
export interface TokenSourceOptions {
  /** The core that issues the tokens. */
  readonly core: {
    /** `https:`, or `http:` on loopback; it may have a path, but no user name, query or fragment. */
    readonly baseUrl: string
    /**
     * 1 to 1024 visible ASCII characters, or a function that returns them. It is called before each
     * request, and once more after the core has answered 401.
     */
    readonly apiKey: ApiKey
  }
  /** The API domain: the `iss` of the tokens. Must equal the `issuer` of the receivers exactly. */
  readonly apiDomain: string
  /** The claims of every token of this source. */
  readonly claims: ServiceClaims
  /** Validity of a token in seconds, an integer from 30 to 3600. Default: 300. */
  readonly validitySeconds?: number | undefined
  /** Requests a new token for every call, for receivers that accept each token once. Default: `false`. */
  readonly singleUse?: boolean | undefined
  /**
   * Binds the tokens to a key of this service, so that nobody else can use them. Not `'dpop'` together with
   * `singleUse`: each proof is used once, and one token serves many requests. Default: unbound tokens.
   */
  readonly bind?: BindOption | undefined
  /**
   * Time limit for a request to the core in milliseconds, including the key function and the response
   * body; 1 to 60,000. Default: 3000.
   */
  readonly timeoutMs?: number | undefined
  /** Allows `http:` for hosts other than loopback. Default: `false`. */
  readonly allowInsecureHttp?: boolean | undefined
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** A monotonic clock in milliseconds, with any origin. Default: `performance.now`. */
  readonly clock?: (() => number) | undefined
}

/** A source of service tokens: one that `tokenSource` creates, or one that the app implements. */
export interface TokenSource {
  /**
   * Returns a token that can be sent now.
   *
   * @param options.after a token that a receiver refused: the caller needs another one. If none is
   * available now, the result is `after` itself, which means that a repeated request would fail.
   * @throws TokenSourceError if there is no token at all.
   */
  token(options?: { readonly after?: string }): Promise<string>
  /**
   * Returns a new proof for one request, to send as `DPoP` with the token in `Authorization: DPoP` (RFC 9449).
   * A source without it has tokens that are sent as `Bearer`.
   */
  proof?(request: ProofRequest): Promise<string>
  /** Resolves once a token is available. @throws TokenSourceError if none can be obtained. */
  ready(): Promise<void>
  /** Aborts pending requests; later calls are rejected with the code `closed`. */
  close(): void
}

/** A `TokenSource` that gets its tokens from the identity core. */
export interface CoreTokenSource extends TokenSource {
  /** Returns the state of the source, from memory. */
  health(): TokenSourceHealth
}

/** A `CoreTokenSource` whose tokens are bound to a key that it has made. `serviceFetch` sends the proofs. */
export interface DpopTokenSource extends CoreTokenSource {
  /**
   * Returns a new proof for one request, to send as `DPoP` with the token in `Authorization: DPoP` (RFC 9449).
   * The `iat` of the proof is by the core's clock, so the clock of this machine does not matter.
   *
   * @throws TypeError (as a rejection) if the request is not valid.
   * @throws TokenSourceError (as a rejection) if there is no token.
   */
  proof(request: ProofRequest): Promise<string>
}

const schema = lazy(() =>
  optionsObject({
    core: optionsObject({
      baseUrl: nonEmptyString(),
      apiKey: apiKeyOption(),
    }),
    apiDomain: nonEmptyString(),
    claims: optionsObject({
      aud: nonEmptyString(),
      sub: nonEmptyString(),
      source: nonEmptyString(),
      token_type: nonEmptyString(),
      permissions: z.array(nonEmptyString(), { error: 'must be a list of non-empty strings' }),
    }),
    validitySeconds: integerBetween(30, 3600).default(300),
    singleUse: flag().default(false),
    bind: bindOption().optional(),
    timeoutMs: numberBetween(1, 60_000, 'milliseconds').default(3000),
    allowInsecureHttp: flag().default(false),
    fetch: functionOf<typeof globalThis.fetch>().optional(),
    clock: functionOf<() => number>().default(() => () => performance.now()),
  }),
)

/**
 * Gets a service's tokens from the identity core: always RS256, signed by a dynamic key, with the claims of the
 * options, a `jti` of 128 random bits and an explicit validity. All calls share one token, unless `singleUse` is set.
 * The first call after 80 % of its lifetime starts a renewal. Calls get the old token meanwhile, until the smaller of
 * 10 s and 10 % of its lifetime before it expires. The source sends no request before the first call or `ready()`, and
 * has no timers. Failures back off: meanwhile, calls without a usable token fail immediately with the last error.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of its range.
 *
 * @example
 * ```ts
 * import { tokenSource } from 'express-service-auth/client'
 *
 * const tokens = tokenSource({
 *   core: {
 *     baseUrl: process.env['CORE_URL'] ?? 'http://127.0.0.1:3567',
 *     apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key',
 *   },
 *   apiDomain: 'https://api.example.com',
 *   claims: {
 *     aud: 'orders',
 *     sub: 'billing',
 *     source: 'microservice',
 *     token_type: 'service-access',
 *     permissions: ['orders:read'],
 *   },
 * })
 * await tokens.ready()
 * console.log(tokens.health().state) // fresh
 * tokens.close()
 * ```
 */
export function tokenSource(
  options: TokenSourceOptions & { readonly bind: 'dpop' },
): DpopTokenSource
export function tokenSource(options: TokenSourceOptions): CoreTokenSource
export function tokenSource(options: TokenSourceOptions): CoreTokenSource {
  const parsed = parseOptions('tokenSource options', schema, options, faultsOf)
  const { apiDomain, claims, validitySeconds, timeoutMs, clock } = parsed
  const fetch = parsed.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const terms = { apiDomain, claims, validitySeconds, timeoutMs }
  const key = parsed.bind === 'dpop' ? createDpopKey() : undefined
  const confirmation = confirmationOf(parsed.bind, key)
  const minting = { core: { ...parsed.core, fetch }, ...terms, confirmation }
  const closing = new AbortController()
  const settings = { minting, clock, closing: closing.signal }
  const inner = (parsed.singleUse ? createSingleUseSource : createCachedSource)(settings)

  async function token({ after }: { readonly after?: string } = {}): Promise<string> {
    closing.signal.throwIfAborted()
    if (after === undefined || typeof after === 'string') return inner.token(after)
    throw new TypeError('after must be a token, as a string')
  }

  async function proof(request: ProofRequest): Promise<string> {
    const { method, uri, token: given } = parseProofRequest(request)
    const provenToken = given ?? (await token())
    const current = inner.current?.()
    // Only a token of this source tells the time of the core.
    if (current === undefined || key === undefined)
      throw new TypeError('proof: the source has no token yet, call token() first')
    const ageMs = Math.max(0, readClock(clock) - current.requestedAt)
    const iat = Math.floor(issuedAt(current.token) + ageMs / 1000)
    return key.sign({ method, uri, token: provenToken, iat })
  }

  return Object.freeze({
    token,
    ...(key !== undefined && { proof }),
    async ready() {
      await token()
    },
    health: () => (closing.signal.aborted ? { state: 'closed' } : inner.health()),
    close() {
      closing.abort(new TokenSourceError('closed'))
    },
  } satisfies CoreTokenSource)
}

function faultsOf(options: Readonly<Record<string, unknown>>): string[] {
  const { core, allowInsecureHttp } = options
  const baseUrl = isObject(core) ? core['baseUrl'] : undefined
  return [...baseUrlFaults('core.baseUrl', { baseUrl, allowInsecureHttp }), ...bindFaults(options)]
}

/** The implementation of a `tokenSource`. */
interface InnerSource {
  token(after: string | undefined): Promise<string>
  health(): TokenSourceHealth
  /** The token that calls share, if they share one. */
  current?(): states.CurrentToken | undefined
}

interface InnerOptions {
  readonly minting: Minting
  readonly clock: () => number
  /** Aborts when the source is closed; its reason is the error for pending calls. */
  readonly closing: AbortSignal
}

/**
 * Caches one token and renews it if a renewal is due during a call: one request at a time, no timers.
 * Requests run in the async context in which the source was created, because all calls share the result.
 */
function createCachedSource({ minting, clock, closing }: InnerOptions): InnerSource {
  let state = states.COLD
  let inFlight: Promise<string> | undefined
  const dispatch = (event: states.TokenStateEvent): void => {
    state = states.advance(state, event)
  }

  async function renew(isForced: boolean): Promise<string> {
    dispatch({ type: 'requested', at: readClock(clock), isForced })
    const outcome = await toEvent(mint(minting, closing))
    dispatch({ ...outcome, at: readClock(clock), jitter: Math.random() })
    return states.renewedToken(state)
  }

  async function toEvent(minted: Promise<string>) {
    const { validitySeconds } = minting
    try {
      return { type: 'minted', token: await minted, validitySeconds } as const
    } catch (error) {
      if (error instanceof TokenSourceError) return { type: 'failed', error } as const
      throw error
    }
  }

  const renewal = AsyncResource.bind((isForced: boolean): Promise<string> => {
    inFlight ??= renew(isForced).finally(() => {
      inFlight = undefined
    })
    return inFlight
  })

  return {
    async token(after) {
      const answer = states.answerTo(state, after, readClock(clock))
      switch (answer.kind) {
        case 'failure':
          throw answer.error
        case 'token':
          // A failure is ignored: calls that need the new token wait for it or start a renewal.
          if (answer.isRenewalDue) renewal(false).catch(() => {})
          return answer.token
        case 'renewal':
          return renewal(answer.isForced).catch((error: unknown) => {
            if (answer.fallback === undefined || closing.aborted) throw error
            return answer.fallback
          })
      }
    },
    health: () => states.tokenHealth(state, readClock(clock)),
    current: () => state.current,
  }
}

/** Limits the connections to the core during a burst of calls. */
const MAX_CONCURRENT_REQUESTS = 8

/**
 * Requests a token for every call. A call fails if it waits for its turn longer than `timeoutMs`, and
 * every call fails during the back-off after a failure.
 */
function createSingleUseSource({ minting, clock, closing }: InnerOptions): InnerSource {
  const limit = limitConcurrency(MAX_CONCURRENT_REQUESTS)
  let lastFailure: (LastTokenFailure & { readonly since: number }) | undefined

  async function mintOne(calledAt: number): Promise<string> {
    closing.throwIfAborted()
    const requestedAt = readClock(clock)
    if (lastFailure !== undefined && isBackingOff(lastFailure, requestedAt)) throw lastFailure.error
    const timeoutMs = minting.timeoutMs - (requestedAt - calledAt)
    if (timeoutMs <= 0) throw new TokenSourceError('core_timeout')
    try {
      const token = await mint({ ...minting, timeoutMs }, closing)
      lastFailure = undefined
      return token
    } catch (error) {
      if (error instanceof TokenSourceError) recordFailure(error, requestedAt)
      throw error
    }
  }

  /** Counts the failures of concurrent requests as one. */
  function recordFailure(error: TokenSourceError, requestedAt: number): void {
    if (lastFailure !== undefined && requestedAt <= lastFailure.since) return
    const at = readClock(clock)
    const backOff = afterTokenFailure(lastFailure, error, { at, jitter: Math.random() })
    lastFailure = { ...backOff, error, since: at }
  }

  return {
    async token() {
      const calledAt = readClock(clock)
      return limit(() => mintOne(calledAt))
    },
    health: () => ({ state: 'single_use', ...states.failureHealth(lastFailure, readClock(clock)) }),
  }
}

/** Runs at most so many tasks concurrently; further ones start in the order of their calls. */
function limitConcurrency(maxConcurrent: number) {
  const waiting: (() => void)[] = []
  let running = 0

  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running < maxConcurrent) running += 1
    else await new Promise<void>((start) => waiting.push(start))
    try {
      return await work()
    } finally {
      // The next task takes over the place of this one.
      const startNext = waiting.shift()
      if (startNext === undefined) running -= 1
      else startNext()
    }
  }
}
