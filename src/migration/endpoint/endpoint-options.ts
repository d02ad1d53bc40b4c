import { z } from 'zod'
import {
  functionOf,
  hasFunctions,
  integerBetween,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
  storeWith,
} from '../../base/options.js'
import type { IdempotencyStore } from '../../idempotency/leased/idempotency-store.js'
import type { CoreClient } from '../core/core-client.js'
import { USER_WARNING_CODES, type UserWarningCode } from '../record-validation/user-finding.js'
import type { MigrationDecisionObserver } from './decision.js'
import type { EndpointSettings } from './handle-request.js'
import { issuersOf, issuersSchema, type MigrationIssuer } from './issuer-options.js'
import type { LoadUser } from './legacy-user.js'
import type { MigrationLimiter } from './limit.js'
import { FIXED_FIELDS, requestReader } from './migration-request.js'

/** Options of `migrationEndpoint`. */
export interface MigrationEndpointOptions {
  /** The core that is asked, such as a `coreClient`. */
  readonly core: CoreClient
  /** Where the keys of requests are reserved; all instances must share it. */
  readonly store: IdempotencyStore
  /** By the name that the issuer has here. */
  readonly issuers: Readonly<Record<string, MigrationIssuer>>
  /** Reads a user from the backend's own store. */
  readonly loadUser: LoadUser
  /** Of the tokens, and of the users. All instances must share them. */
  readonly limits: { readonly credential: MigrationLimiter; readonly user: MigrationLimiter }
  /** Warnings of `validateUser`; users with any other are refused. Default: none. */
  readonly acceptWarnings?: readonly UserWarningCode[] | undefined
  /** Called with each decision. What it throws or rejects with has no effect. */
  readonly onDecision?: MigrationDecisionObserver | undefined
  /** The member of the body that names the organization. Default: `'organizationId'`. */
  readonly organizationField?: string | undefined
  /** Bytes, 1024 to 1,048,576. Default: 16384. */
  readonly maxBodyBytes?: number | undefined
  /** Seconds, 1 to 3600: how long an import is trusted to be alive without renewing. Default: 30. */
  readonly leaseSeconds?: number | undefined
  /** Seconds, 1 to 31,536,000: how long it is kept that a user came over. Default: 86400. */
  readonly retentionSeconds?: number | undefined
  /** Milliseconds, 1 to 60,000: after them the 503, whatever is still at work. Default: 10000. */
  readonly timeoutMs?: number | undefined
}

const limiter = z.custom<MigrationLimiter>((value) => hasFunctions(value, ['consume']), {
  error: 'must be a limiter with consume',
})

const CORE_FUNCTIONS = ['importUser', 'coreIdOf', 'user', 'usersWith'] as const

const schema = optionsObject({
  core: z.custom<CoreClient>((value) => hasFunctions(value, CORE_FUNCTIONS), {
    error: 'must be a core client',
  }),
  store: storeWith<IdempotencyStore>(['reserve', 'renew', 'settle']),
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
    .refine((name) => !FIXED_FIELDS.includes(name), { error: 'must not be another member' })
    .default('organizationId'),
  maxBodyBytes: integerBetween(1024, 1_048_576).default(16_384),
  leaseSeconds: numberBetween(1, 3600, 'seconds').default(30),
  retentionSeconds: numberBetween(1, 31_536_000, 'seconds').default(86_400),
  timeoutMs: integerBetween(1, 60_000).default(10_000),
})

/** Checked options. */
export interface ParsedEndpointOptions extends EndpointSettings {
  readonly onDecision: MigrationDecisionObserver | undefined
  readonly timeoutMs: number
}

const milliseconds = (seconds: number): number => Math.round(seconds * 1000)

/** @throws TypeError when an option is missing, unknown, of the wrong type or out of its range. */
export function parseEndpointOptions(input: unknown): ParsedEndpointOptions {
  const options = parseOptions('migrationEndpoint options', schema, input)
  const { core, store, loadUser, limits, onDecision, maxBodyBytes, timeoutMs } = options
  return {
    core,
    store,
    loadUser,
    limits,
    onDecision,
    maxBodyBytes,
    timeoutMs,
    issuers: issuersOf(options.issuers),
    acceptWarnings: new Set(options.acceptWarnings),
    readRequest: requestReader(options.organizationField),
    leaseMs: milliseconds(options.leaseSeconds),
    retentionMs: milliseconds(options.retentionSeconds),
  }
}
