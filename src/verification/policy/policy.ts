import { z } from 'zod'
import { isStaticKeyId } from '../../base/compact-jws.js'
import type { DecisionObserver } from '../../base/decision/decision-event.js'
import { addressFault } from '../../base/fetch.js'
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
import {
  type SenderConstraint,
  senderConstraintFaults,
  senderConstraintOption,
} from '../confirmation/sender-constraint.js'
import type { DeniedLists, LiveDenylist } from '../denylist/live-denylist.js'
import { type KeySet, keySourceOf } from '../key-set/key-set.js'
import { staleIfErrorOption } from '../key-set/remote-key-set.js'
import { denylistOption } from './denylist-option.js'
import type { PermissionsClaim } from './policy-options.js'

/** What a policy requires of its kind of tokens. */
export type TokenRules =
  | {
      readonly kind: 'service'
      readonly source: string
      readonly tokenType: string
      readonly staticKeys: 'refuse' | 'accept'
    }
  | {
      readonly kind: 'oauth2'
      readonly permissionsClaim: PermissionsClaim
      readonly accessTokenType: 'at+jwt' | 'any'
    }

/** A checked policy, with its defaults. */
export interface Policy {
  readonly issuer: string
  readonly audience: string
  readonly tokens: TokenRules
  readonly ceilings: Ceilings
  readonly permissions: readonly string[]
  readonly clockToleranceSeconds: number
  readonly maxLifetimeSeconds: number
  /** The entries of the fixed denylists. */
  readonly denied: DeniedLists
  readonly liveDenylists: readonly LiveDenylist[]
  readonly senderConstraint: SenderConstraint
  readonly tokenCacheMax: number
  readonly onDecision: DecisionObserver | undefined
  readonly clock: () => number
  readonly keySet: KeySetAddress
}

/** The cache allocates room for all its entries up front, so a larger number is a typing error. */
const MAX_CACHED_TOKENS = 1_000_000

const strings = (): z.ZodArray<z.ZodString> =>
  z.array(nonEmptyString(), { error: 'must be a list of strings' })

const commonShape = () => ({
  issuer: nonEmptyString(),
  audience: nonEmptyString(),
  callers: callersOption(),
  permissions: strings().min(1, { error: 'must not be empty' }).default([]),
  jwksUri: nonEmptyString().optional(),
  keySet: z
    .custom<KeySet>((value) => keySourceOf(value) !== undefined, {
      error: 'must be a key set made by remoteKeySet',
    })
    .optional(),
  clockToleranceSeconds: numberBetween(0, 60, 'seconds').default(5),
  maxLifetimeSeconds: numberBetween(1, 604_800, 'seconds').default(3600),
  denylist: denylistOption().prefault({}),
  senderConstraint: senderConstraintOption().prefault({}),
  tokenCache: z
    .union([z.literal(false), z.strictObject({ max: integerBetween(1, MAX_CACHED_TOKENS) })], {
      error: `must be false or { max: an integer from 1 to ${MAX_CACHED_TOKENS} }`,
    })
    .default({ max: 10_000 }),
  allowInsecureHttp: flag().optional(),
  staleIfErrorSeconds: staleIfErrorOption().optional(),
  onDecision: functionOf<DecisionObserver>().optional(),
  clock: functionOf<() => number>().default(() => () => Date.now()),
})

const onlyFor = (tokens: TokenRules['kind']): z.ZodOptional<z.ZodUndefined> =>
  z.undefined({ error: `is only for tokens: '${tokens}'` }).optional()

const serviceSchema = lazy(() =>
  optionsObject({
    ...commonShape(),
    tokens: z.literal('service', { error: "must be 'service' or 'oauth2'" }).default('service'),
    source: nonEmptyString(),
    tokenType: nonEmptyString(),
    apiBasePath: nonEmptyString().optional(),
    staticKeys: z
      .enum(['refuse', 'accept'], { error: "must be 'refuse' or 'accept'" })
      .default('refuse'),
    permissionsClaim: onlyFor('oauth2'),
    accessTokenType: onlyFor('oauth2'),
  }),
)

const oauth2Schema = lazy(() =>
  optionsObject({
    ...commonShape(),
    tokens: z.literal('oauth2'),
    permissionsClaim: z.enum(['scope', 'scp', 'permissions', 'roles'], {
      error: "must be 'scope', 'scp', 'permissions' or 'roles'",
    }),
    accessTokenType: z
      .enum(['at+jwt', 'any'], { error: "must be 'at+jwt' or 'any'" })
      .default('at+jwt'),
    source: onlyFor('service'),
    tokenType: onlyFor('service'),
    apiBasePath: onlyFor('service'),
    staticKeys: onlyFor('service'),
  }),
)

/**
 * Checks a policy when the middleware is made. `place` is its index in a list of policies, such as `[1]`.
 *
 * @throws TypeError naming every faulty path and what it should have been.
 */
export function parsePolicy(input: unknown, place = ''): Policy {
  const subject = `serviceAuth policy${place}`
  const isOAuth2 = isObject(input) && input['tokens'] === 'oauth2'
  const options = parseOptions(
    subject,
    () => (isOAuth2 ? oauth2Schema() : serviceSchema()),
    input,
    (raw) => [
      ...(isOAuth2 && !hasKeySet(raw) ? [NO_KEY_SET] : keySetAddressFaults(raw)),
      ...unreachablePermissions(raw),
      ...senderConstraintFaults(raw),
    ],
  )
  return Object.freeze({
    issuer: options.issuer,
    audience: options.audience,
    tokens: tokenRulesOf(options),
    ceilings: options.callers,
    permissions: options.permissions,
    clockToleranceSeconds: options.clockToleranceSeconds,
    maxLifetimeSeconds: options.maxLifetimeSeconds,
    ...options.denylist,
    senderConstraint: options.senderConstraint,
    tokenCacheMax: options.tokenCache === false ? 0 : options.tokenCache.max,
    onDecision: options.onDecision,
    clock: options.clock,
    keySet: readKeySetAddress(options),
  })
}

const MAX_POLICIES = 8

/**
 * Checks several policies when the middleware is made.
 *
 * @throws TypeError if one is faulty, or if two accept the same tokens.
 */
export function parsePolicies(inputs: readonly unknown[]): readonly Policy[] {
  if (inputs.length < 2 || inputs.length > MAX_POLICIES) {
    throw new TypeError(`serviceAuth policies: must be a list of 2 to ${MAX_POLICIES} policies`)
  }
  const policies = parseEach(inputs)
  for (const [index, { issuer, tokens }] of policies.entries()) {
    const first = policies.findIndex(
      (other) => other.issuer === issuer && other.tokens.kind === tokens.kind,
    )
    if (first === index) continue
    throw new TypeError(
      `serviceAuth policies: [${first}] and [${index}] have the same issuer and the same option tokens`,
    )
  }
  return policies
}

/** @throws TypeError naming every faulty path of every policy. */
function parseEach(inputs: readonly unknown[]): readonly Policy[] {
  const policies: Policy[] = []
  const faults: string[] = []
  // `Array.from` also gives the holes of a list.
  for (const [index, input] of Array.from(inputs).entries()) {
    try {
      policies.push(parsePolicy(input, `[${index}]`))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      faults.push(error.message)
    }
  }
  if (faults.length > 0) throw new TypeError(faults.join('\n'))
  return policies
}

type Options =
  | z.output<ReturnType<typeof serviceSchema>>
  | z.output<ReturnType<typeof oauth2Schema>>

function tokenRulesOf(options: Options): TokenRules {
  if (options.tokens === 'oauth2') {
    const { permissionsClaim, accessTokenType } = options
    return { kind: 'oauth2', permissionsClaim, accessTokenType }
  }
  const { source, tokenType, staticKeys } = options
  return { kind: 'service', source, tokenType, staticKeys }
}

/** The address cannot be derived from an OAuth 2.0 issuer, because this package does no discovery. */
const NO_KEY_SET = "jwksUri or keySet is required with tokens: 'oauth2'"

const hasKeySet = ({ jwksUri, keySet }: Readonly<Record<string, unknown>>): boolean =>
  jwksUri !== undefined || keySet !== undefined

/** Whether the key is a static one of the core that may not sign. Other issuers have no static keys. */
export const refusesStaticKey = (kid: string, { tokens }: Policy): boolean =>
  tokens.kind === 'service' && tokens.staticKeys === 'refuse' && isStaticKeyId(kid)

/** Where a policy's keys come from: a shared key set, or an address for one of its own. */
export type KeySetAddress =
  | { readonly kind: 'shared'; readonly keySet: KeySet }
  | {
      readonly kind: 'own'
      readonly jwksUri: string
      readonly allowInsecureHttp: boolean
      readonly staleIfErrorSeconds: number | undefined
    }

interface AddressOptions {
  readonly issuer: string
  readonly apiBasePath?: string | undefined
  readonly jwksUri?: string | undefined
  readonly keySet?: KeySet | undefined
  readonly allowInsecureHttp?: boolean | undefined
  readonly staleIfErrorSeconds?: number | undefined
}

const DEFAULT_API_BASE_PATH = '/auth'

/** Without `keySet` and `jwksUri` the address is made of `issuer` and `apiBasePath`. */
export function readKeySetAddress(options: AddressOptions): KeySetAddress {
  if (options.keySet !== undefined) return { kind: 'shared', keySet: options.keySet }
  const basePath = options.apiBasePath ?? DEFAULT_API_BASE_PATH
  const jwksUri =
    options.jwksUri ?? `${options.issuer}${basePath === '/' ? '' : basePath}/jwt/jwks.json`
  const { allowInsecureHttp = false, staleIfErrorSeconds } = options
  return { kind: 'own', jwksUri, allowInsecureHttp, staleIfErrorSeconds }
}

export function keySetAddressFaults(policy: Readonly<Record<string, unknown>>): string[] {
  const { issuer, keySet, jwksUri, apiBasePath } = policy
  const allowInsecureHttp = policy['allowInsecureHttp'] === true
  if (keySet !== undefined) return faultsBesideKeySet(policy)
  const faults: string[] = []
  if (typeof apiBasePath === 'string' && !isBasePath(apiBasePath)) {
    faults.push('apiBasePath must start with / and have no trailing slash, query or fragment')
  }
  if (typeof jwksUri === 'string' && jwksUri !== '') {
    const fault = addressFault(jwksUri, allowInsecureHttp)
    if (fault !== undefined) faults.push(`jwksUri ${fault}`)
  } else if (jwksUri === undefined && typeof issuer === 'string' && issuer !== '') {
    const fault = issuerFault(issuer, allowInsecureHttp)
    if (fault !== undefined) faults.push(`issuer ${fault}`)
  }
  return faults
}

function faultsBesideKeySet(policy: Readonly<Record<string, unknown>>): string[] {
  return ['jwksUri', 'apiBasePath', 'allowInsecureHttp', 'staleIfErrorSeconds']
    .filter((name) => policy[name] !== undefined)
    .map((name) => `${name} cannot be combined with keySet, which has its own`)
}

function isBasePath(path: string): boolean {
  return path === '/' || (path.startsWith('/') && !path.endsWith('/') && !/[?#\s\\]/.test(path))
}

function issuerFault(issuer: string, allowInsecureHttp: boolean): string | undefined {
  if (!/^https?:\/\/[^/?#\s\\][^?#\s\\]*$/i.test(issuer) || issuer.endsWith('/')) {
    return (
      'must be an absolute http(s) URL without query, fragment or trailing slash, such as ' +
      'https://core.example (or give jwksUri)'
    )
  }
  return addressFault(issuer, allowInsecureHttp)
}

/** The approved callers and their ceilings; `undefined` for a caller without one. */
export type Ceilings = ReadonlyMap<string, ReadonlySet<string> | undefined>

const isName = (value: unknown): value is string => typeof value === 'string' && value !== ''

const callersOption = (): z.ZodPipe<z.ZodUnknown, z.ZodTransform<Ceilings, unknown>> =>
  z.unknown().transform((input, context): Ceilings => {
    const report = (message: string, path: PropertyKey[] = []): void => {
      context.issues.push({ code: 'custom', message, path, input })
    }
    if (Array.isArray(input)) return fromList(input, report)
    if (isObject(input)) return fromRecord(input, report)
    report('must be a list of caller names or an object of caller names with their permissions')
    return new Map()
  })

type ReportFault = (message: string, path?: PropertyKey[]) => void

function fromList(names: readonly unknown[], report: ReportFault): Ceilings {
  if (names.length === 0) report('must name at least one caller')
  const ceilings = new Map<string, undefined>()
  // `entries` also visits the holes of a sparse list, which `forEach` skips.
  for (const [index, name] of names.entries()) {
    if (isName(name)) ceilings.set(name, undefined)
    else report('must be a non-empty string', [index])
  }
  return ceilings
}

// A map, not the record: a caller named `__proto__` inherits nothing.
function fromRecord(record: Record<string, unknown>, report: ReportFault): Ceilings {
  const entries = Object.entries(record)
  if (entries.length === 0) report('must name at least one caller')
  const ceilings = new Map<string, ReadonlySet<string>>()
  for (const [name, permissions] of entries) {
    if (name === '') report('must not hold an empty caller name')
    if (Array.isArray(permissions) && Array.from(permissions).every(isName)) {
      ceilings.set(name, new Set(permissions))
    } else report('must be a list of non-empty strings', [name])
  }
  return ceilings
}

/** Required permissions must fit at least one ceiling, or everybody would be refused. */
function unreachablePermissions(policy: Readonly<Record<string, unknown>>): string[] {
  const { callers, permissions } = policy
  if (!isObject(callers) || !Array.isArray(permissions)) return []
  const ceilings = Object.values(callers).filter(Array.isArray)
  const reachable = ceilings.some((ceiling) => permissions.every((name) => ceiling.includes(name)))
  return reachable || ceilings.length === 0
    ? []
    : ['permissions must be within the ceiling of at least one caller in callers']
}
