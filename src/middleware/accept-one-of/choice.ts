import type { Request, RequestHandler } from 'express'
import { z } from 'zod'
import type { Schemes } from '../../base/decision/problem.js'
import {
  functionOf,
  lazy,
  nonEmptyString,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { readAuthorization } from '../../verification/credential/authorization.js'
import type { ServiceIdentity } from '../../verification/policy/identity.js'
import { serviceOf } from '../request-state.js'
import {
  challengeSchemesOf,
  isServiceAuth,
  type MultiIssuerAuth,
  type ServiceAuth,
} from '../service-auth.js'

/** The owner of a credential. Not a promise, because it would not be awaited. */
export type NoPromise =
  | string
  | number
  | bigint
  | boolean
  | symbol
  | null
  | undefined
  | (object & { readonly then?: never })

/** One kind of credential: how to recognise a request that carries it, and how to verify it. */
export interface Choice<Identity = NoPromise> {
  /** Its name for `credentialOf` and in events. */
  readonly name: string
  /** Whether the request carries it, valid or not. Called before anything is verified. */
  presented(request: Request): boolean
  /**
   * Verifies it. Accepts it only by calling `next()` without an argument; its first call counts. If it returns a
   * promise, its result counts once the promise has settled.
   */
  readonly verify: RequestHandler
  /** Returns the owner of the accepted credential. `undefined` or `null` refuses the request. */
  identity(request: Request): Identity
  /** Handlers that run after `verify`, only for requests with this credential. */
  readonly authorize?: RequestHandler | readonly RequestHandler[] | undefined
}

/** A choice whose verifier is a `serviceAuth`: the identity is `serviceOf`. */
export interface ServiceChoice extends Omit<Choice, 'verify' | 'identity'> {
  /** The result of `serviceAuth`. */
  readonly verify: ServiceAuth | MultiIssuerAuth
  /** Always `serviceOf`. */
  readonly identity?: undefined
}

/** A choice of `acceptOneOf`. */
export type AnyChoice = Choice | ServiceChoice

/** A choice with checked members and its defaults. */
export interface CheckedChoice {
  readonly name: string
  presented(request: Request): unknown
  readonly verify: RequestHandler
  identity(request: Request): unknown
  readonly authorize: readonly RequestHandler[]
  /** The schemes in which its `serviceAuth` challenges; `undefined` if it has another verifier. */
  readonly schemes: Schemes | undefined
}

/** The result of `credentialOf` for these choices, discriminated by `name`. */
export type CredentialOf<OneOf extends AnyChoice> = OneOf extends {
  readonly name: infer Name
  identity(request: Request): infer Identity
}
  ? { readonly name: Name; readonly identity: NonNullable<Identity> }
  : { readonly name: OneOf['name']; readonly identity: ServiceIdentity }

/** Refuses error handlers, of four parameters: Express would skip one, so it would check nothing. */
const HANDLER_ERROR = { error: 'must be a handler of request, response and next' }

const requestHandler = () =>
  z.custom<RequestHandler>(
    (value) => typeof value === 'function' && value.length <= 3,
    HANDLER_ERROR,
  )

const choiceSchema = lazy(() =>
  optionsObject({
    name: nonEmptyString(),
    presented: functionOf<CheckedChoice['presented']>(),
    verify: requestHandler(),
    identity: functionOf<CheckedChoice['identity']>().optional(),
    authorize: z
      .union([requestHandler(), z.array(requestHandler())], {
        error: 'must be a handler of request, response and next, or a list of them',
      })
      .default([]),
  }),
)

/** @throws TypeError if there is no choice, a name occurs twice, or a choice is incomplete. */
export function parseChoices(input: unknown): readonly CheckedChoice[] {
  if (!Array.isArray(input)) throw new TypeError('acceptOneOf choices: must be a list')
  if (input.length === 0) throw new TypeError('acceptOneOf choices: must not be empty')
  // `Array.from` also visits the holes of a sparse list.
  const choices = Array.from(input, parseChoice)
  const names = choices.map(({ name }) => name)
  const repeated = names.find((name, index) => names.indexOf(name) !== index)
  if (repeated === undefined) return choices
  throw new TypeError(`acceptOneOf choices: must not have two choices named ${repeated}`)
}

function parseChoice(input: unknown, index: number): CheckedChoice {
  const subject = `acceptOneOf choices[${index}]`
  const { name, presented, verify, identity, authorize } = parseOptions(
    subject,
    choiceSchema,
    input,
  )
  if (identity === undefined && !isServiceAuth(verify)) {
    throw new TypeError(`${subject}: identity must be a function`)
  }
  return {
    name,
    // Bound, because a choice may be an instance of a class.
    presented: presented.bind(input),
    verify,
    identity: identity?.bind(input) ?? serviceOf,
    authorize: [authorize].flat(),
    schemes: challengeSchemesOf(verify),
  }
}

/** A choice of `acceptOneOf` without its name. */
export interface ServiceCredential {
  /** Whether the request has an `Authorization` header that is not a session's. */
  presented(request: Request): boolean
  /** The `serviceAuth` passed to `serviceCredential`. */
  readonly verify: ServiceAuth | MultiIssuerAuth
  /** Returns the accepted caller. */
  identity(request: Request): ServiceIdentity
}

/**
 * A service's token, for `acceptOneOf`: every `Authorization` header that is not a session's, verified
 * by this `serviceAuth`.
 *
 * @throws TypeError if `auth` is not a result of `serviceAuth`.
 *
 * @example
 * ```ts
 * import { acceptOneOf, serviceAuth, serviceCredential } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const guard = acceptOneOf([{ name: 'service', ...serviceCredential(auth) }])
 * ```
 */
export function serviceCredential(auth: ServiceAuth | MultiIssuerAuth): ServiceCredential {
  if (!isServiceAuth(auth)) {
    throw new TypeError('serviceCredential: expected a middleware that serviceAuth returned')
  }
  return {
    presented: (request) => readAuthorization(request).type === 'service',
    verify: auth,
    identity: serviceOf,
  }
}
