import { z } from 'zod'
import type { MigrationDecisionObserver } from '../../base/decision/migration-event.js'
import {
  functionOf,
  hasFunctions,
  integerBetween,
  lazy,
  nonEmptyString,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import type { CoreClient } from '../core/core-client.js'
import { USER_WARNING_CODES, type UserWarningCode } from '../record-validation/user-finding.js'
import { type Issuer, issuersOf, issuersSchema, type MigrationIssuer } from './issuer-options.js'
import type { LoadUser } from './legacy-user.js'
import { FIXED_FIELDS, type MigrationRequest, requestReader } from './migration-request.js'

/**
 * A rate limiter with the interface of `rate-limiter-flexible`. A rejection with a number `msBeforeNext`
 * means that the limit is reached. Any other rejection means that the limiter failed.
 */
export interface MigrationLimiter {
  /** Consumes one point for the key, which is a digest of 24 characters. */
  consume(key: string): Promise<unknown>
}

/** Options of `migrationEndpoint`. */
export interface MigrationEndpointOptions {
  /** A client of the core, such as a `coreClient`. */
  readonly core: CoreClient
  /** Legacy issuers by name. */
  readonly issuers: Readonly<Record<string, MigrationIssuer>>
  /** Loads a user from the backend's own store. */
  readonly loadUser: LoadUser
  /** Rate limiters per token and per user. All instances must share them. */
  readonly limits: { readonly credential: MigrationLimiter; readonly user: MigrationLimiter }
  /** Warnings of `validateUser` to accept. Users with any other warning are refused. Default: none. */
  readonly acceptWarnings?: readonly UserWarningCode[] | undefined
  /** Called with each decision. If it throws or rejects, the error is ignored. */
  readonly onDecision?: MigrationDecisionObserver | undefined
  /** Name of the body member that contains the organization's id. Default: `'organizationId'`. */
  readonly organizationField?: string | undefined
  /** Maximum bytes of the body, 1024 to 1,048,576. Default: 16384. */
  readonly maxBodyBytes?: number | undefined
  /** Time limit in milliseconds, 1 to 60,000. Then the response is a 503, even if work is still in progress. Default: 10000. */
  readonly timeoutMs?: number | undefined
}

const limiter = z.custom<MigrationLimiter>((value) => hasFunctions(value, ['consume']), {
  error: 'must be a limiter with consume',
})

const CORE_FUNCTIONS = ['importUser', 'coreIdOf', 'user', 'usersWith'] as const

const schema = lazy(() =>
  optionsObject({
    core: z.custom<CoreClient>((value) => hasFunctions(value, CORE_FUNCTIONS), {
      error: 'must be a core client',
    }),
    issuers: issuersSchema,
    loadUser: functionOf<LoadUser>(),
    limits: optionsObject({ credential: limiter, user: limiter }),
    acceptWarnings: z
      .array(z.enum(USER_WARNING_CODES, { error: 'must be a warning of validateUser' }), {
        error: 'must be a list of warnings',
      })
      .default([]),
    onDecision: functionOf<MigrationDecisionObserver>().optional(),
    organizationField: nonEmptyString()
      .refine((name) => !FIXED_FIELDS.includes(name), {
        error: 'must not be the name of another member of the body',
      })
      .default('organizationId'),
    maxBodyBytes: integerBetween(1024, 1_048_576).default(16_384),
    timeoutMs: integerBetween(1, 60_000).default(10_000),
  }),
)

export interface EndpointSettings
  extends Pick<MigrationEndpointOptions, 'core' | 'loadUser' | 'limits' | 'onDecision'> {
  readonly issuers: readonly Issuer[]
  readonly acceptWarnings: ReadonlySet<UserWarningCode>
  readonly readRequest: (bytes: Uint8Array) => MigrationRequest | undefined
  readonly maxBodyBytes: number
  readonly timeoutMs: number
}

/** @throws TypeError if an option is missing, unknown, of the wrong type or out of range. */
export function parseEndpointOptions(input: unknown): EndpointSettings {
  const options = parseOptions('migrationEndpoint options', schema, input)
  return {
    ...options,
    issuers: issuersOf(options.issuers),
    acceptWarnings: new Set(options.acceptWarnings),
    readRequest: requestReader(options.organizationField),
  }
}
