import type { DecisionObserver } from '../../base/decision/decision-event.js'
import type { SenderConstraintOption } from '../confirmation/sender-constraint.js'
import type { KeySet } from '../key-set/key-set.js'
import type { DenylistOption } from './denylist-option.js'

/** Approved callers: a list of names, or an object of names and the permissions each may have. */
export type CallersOption = readonly string[] | Readonly<Record<string, readonly string[]>>

/** The options of `serviceAuth` that do not depend on the kind of tokens. */
interface PolicyOptions {
  /**
   * Exact `iss`: the API domain of the core. Without `jwksUri` or `keySet` an absolute `http(s)` URL
   * without query, fragment or trailing slash.
   */
  readonly issuer: string
  /**
   * The approved `sub` values, at least one. In the record form each caller has a ceiling: permissions
   * in a token beyond it do not count; with an empty one the caller has none.
   */
  readonly callers: CallersOption
  /**
   * Permissions required of every request after this middleware: not an empty list, and all within the
   * ceiling of one caller. Default: none.
   */
  readonly permissions?: readonly string[] | undefined
  /** The address of the key set. */
  readonly jwksUri?: string | undefined
  /**
   * A key set made by `remoteKeySet`, shared among several policies. Not together with `jwksUri`, `apiBasePath`,
   * `allowInsecureHttp` or `staleIfErrorSeconds`: it has its own.
   */
  readonly keySet?: KeySet | undefined
  /** Seconds, 0 to 60, granted to `exp`, `nbf` and `iat`. Default: 5. */
  readonly clockToleranceSeconds?: number | undefined
  /** Seconds, 1 to 604,800: the longest life of a token that is accepted. Default: 3600. */
  readonly maxLifetimeSeconds?: number | undefined
  /**
   * Tokens to refuse immediately, cached ones included: fixed, live or a list of both. A live denylist is
   * asked for each request; while one is unknown, requests get the 503. Default: none.
   */
  readonly denylist?: DenylistOption | undefined
  /**
   * Which tokens that are bound to a client certificate or a key are accepted, and whether unbound ones are
   * refused. Without it, a token with `cnf` is refused: its binding cannot be checked.
   */
  readonly senderConstraint?: SenderConstraintOption | undefined
  /**
   * How many verified tokens are remembered, 1 to 1,000,000, by digest; `false` for none. `max` also
   * bounds their size: `max` KiB of tokens in all. Default: `{ max: 10000 }`.
   */
  readonly tokenCache?: { readonly max: number } | false | undefined
  /** Allows `http:` key-set addresses beyond loopback. Default: `false`. */
  readonly allowInsecureHttp?: boolean | undefined
  /**
   * Seconds, 0 to 3600: how long the key set stays in use past its `max-age` while it cannot be fetched.
   * Default: 0.
   */
  readonly staleIfErrorSeconds?: number | undefined
  /** Called with every decision of this middleware. */
  readonly onDecision?: DecisionObserver | undefined
  /** The time in milliseconds since the epoch. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined
}

/** Requirements on a service token of the core and its caller: the options of `serviceAuth`. */
export interface ServiceAuthPolicy extends PolicyOptions {
  /** The kind of tokens: service tokens of the core. */
  readonly tokens?: 'service' | undefined
  /** Exact `aud`: the name of this receiver. A token whose `aud` is an array is refused. */
  readonly audience: string
  /** Exact `source`. */
  readonly source: string
  /** Exact `token_type`. */
  readonly tokenType: string
  /**
   * The key set is at `{issuer}{apiBasePath}/jwt/jwks.json`, unless `jwksUri` or `keySet` says otherwise.
   * Begins with a slash and does not end with one. Default: `/auth`.
   */
  readonly apiBasePath?: string | undefined
  /** Whether a `kid` that starts with `s-`, a static key of the core, may sign. Default: `'refuse'`. */
  readonly staticKeys?: 'refuse' | 'accept' | undefined
  /** Only with `tokens: 'oauth2'`. Named here, or TypeScript would widen the literal beside a spread that has `tokens`. */
  readonly permissionsClaim?: undefined
  /** Only with `tokens: 'oauth2'`. */
  readonly accessTokenType?: undefined
}

/**
 * Requirements on an OAuth 2.0 access token (RFC 9068) and the client that it was issued to: the
 * options of `serviceAuth` for any OAuth 2.0 issuer. `jwksUri` or `keySet` is required.
 */
export interface OAuth2Policy extends PolicyOptions {
  /** The kind of tokens: OAuth 2.0 access tokens. */
  readonly tokens: 'oauth2'
  /** The `aud`, or a member of it: the name of this receiver at the issuer. */
  readonly audience: string
  /**
   * The claim that grants permissions: `scope` is a string of names separated by spaces, `scp` such a
   * string or a list of names, `permissions` and `roles` are lists. A token without it has none.
   */
  readonly permissionsClaim: PermissionsClaim
  /**
   * The `typ` of the token's header. `'at+jwt'` is required by RFC 9068, section 4. `'any'` also accepts
   * a token without `typ` or with `JWT`, and refuses one that looks like an ID token, which proves nothing:
   * only a distinct `audience` and `callers` keep other tokens of the issuer out. Default: `'at+jwt'`.
   */
  readonly accessTokenType?: 'at+jwt' | 'any' | undefined
}

export type PermissionsClaim = 'scope' | 'scp' | 'permissions' | 'roles'
