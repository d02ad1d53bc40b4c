import { z } from 'zod'
import { isStaticKeyId } from '../../base/compact-jws.js'
import type { DecisionObserver } from '../../base/decision/decision-event.js'
import {
  flag,
  functionOf,
  integerBetween,
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
import type { KeySet } from '../key-set/key-set.js'
import { keySourceOf } from '../key-set/key-set.js'
import { staleIfErrorOption } from '../key-set/remote-key-set.js'
import { type Ceilings, callersOption, unreachablePermissions } from './callers.js'
import { denylistOption } from './denylist-option.js'
import { type KeySetAddress, keySetAddressFaults, readKeySetAddress } from './key-set-address.js'
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

/** Parsed first, because `tokens` determines the other options. */
const tokensSchema = lazy(() =>
  z.looseObject(
    {
      tokens: z
        .enum(['service', 'oauth2'], { error: "must be 'service' or 'oauth2'" })
        .default('service'),
    },
    { error: 'must be an object' },
  ),
)

const serviceSchema = lazy(() =>
  optionsObject({
    ...commonShape(),
    tokens: z.literal('service').default('service'),
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
  const isOAuth2 = parseOptions(subject, tokensSchema, input).tokens === 'oauth2'
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
