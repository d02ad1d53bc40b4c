import type { Express, RequestHandler } from 'express'
import {
  acceptOneOf,
  requirePermissions,
  type ServiceAuth,
  serviceAuth,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import type { SessionContainer, VerifySessionOptions } from 'supertokens-node/recipe/session'
import type { ExpressModule } from '../support/receiver/express-majors.js'
import { openReceiver, type Receiver } from '../support/receiver/open-receiver.js'
import {
  FORBIDDEN,
  INVALID_TOKEN,
  NO_TOKEN,
  UNAVAILABLE,
} from '../support/receiver/refusal-bytes.js'
import { API_DOMAIN, type BackendSdk, type SessionRequest } from './backend-sdk.js'
import type { Asked } from './walk-cells.js'

const POLICY = {
  issuer: API_DOMAIN,
  audience: 'orders',
  source: 'microservice',
  tokenType: 'service-access',
  callers: ['billing'],
}
const PERMISSION = 'orders:write'

const REFUSALS = new Map([
  [NO_TOKEN, '401 without a token'],
  [INVALID_TOKEN, '401 of an invalid token'],
  [FORBIDDEN, '403 of a service'],
  [UNAVAILABLE, '503 of a service'],
])

/** The claims that the app's `serviceAuth` accepts. */
export const SERVICE_CLAIMS = {
  aud: POLICY.audience,
  sub: 'billing',
  source: POLICY.source,
  token_type: POLICY.tokenType,
  permissions: [PERMISSION],
}

/** Refuses one user, as the claims of an app would. */
export const blocking: VerifySessionOptions = {
  overrideGlobalClaimValidators: (_validators, session) => [
    {
      id: 'blocked',
      validate: async () =>
        session.getUserId() === 'blocked'
          ? { isValid: false, reason: 'shut out' }
          : { isValid: true },
    },
  ],
}

/** Answers with the user of the request's session. */
const answerUser: RequestHandler = (request: SessionRequest, response) => {
  response.json({ user: request.session?.getUserId() ?? null })
}

interface SessionReceiverOptions {
  readonly express: ExpressModule
  readonly sdk: BackendSdk
  /** A middleware before the SDK's routes. */
  readonly before?: RequestHandler | undefined
  readonly mount: (app: Express) => void
  /** Default: answers with the user of the session. */
  readonly handler?: RequestHandler
}

/** Opens an app in the order that the SDK requires: its routes, what is tested, its error handler. */
export function openSessionReceiver(options: SessionReceiverOptions): Promise<Receiver> {
  const { express, sdk, before, mount, handler = answerUser } = options
  return openReceiver({
    express,
    mount(app) {
      if (before !== undefined) app.use(before)
      sdk.mount(app)
      mount(app)
    },
    handler,
    answerError: sdk.errorHandler,
  })
}

export interface AppOptions {
  readonly express: ExpressModule
  readonly sdk: BackendSdk
  readonly jwksUri: string
  /** Where it is noted who was asked to verify. */
  readonly asked: Asked[]
  /** Where it is noted what the gate tells: a reason, or `accepted`. */
  readonly told: string[]
  readonly before?: RequestHandler | undefined
  readonly verifying?: VerifySessionOptions
  readonly deniedKeys?: string[]
}

/** An app whose one endpoint serves users and services, and says whom. */
export async function openApp(
  options: AppOptions,
): Promise<Pick<Receiver, 'url' | 'raw' | 'close'>> {
  const { express, sdk, before, told } = options
  const auth = watchedAuth(options)
  const gate = acceptOneOf(
    [
      { name: 'user', ...watchedSession(options) },
      { name: 'service', ...serviceCredential(auth), authorize: requirePermissions(PERMISSION) },
    ],
    { onDecision: (event) => told.push('reason' in event ? event.reason : event.outcome) },
  )
  const handler: RequestHandler = (request, response) => {
    const { name, identity } = gate.credentialOf(request)
    response.json({ name, id: name === 'user' ? identity.getUserId() : identity.name })
  }
  const mount = (app: Express) => void app.use(gate)
  const { url, raw, close } = await openSessionReceiver({ express, sdk, before, mount, handler })
  return {
    url,
    raw,
    close() {
      auth.close()
      return close()
    },
  }
}

function watchedAuth({ jwksUri, asked }: AppOptions): ServiceAuth {
  return serviceAuth({
    ...POLICY,
    jwksUri,
    onDecision: ({ by }) => {
      if (by === 'serviceAuth') asked.push('serviceAuth')
    },
  })
}

function watchedSession({ sdk, asked, verifying = blocking, deniedKeys = [] }: AppOptions) {
  const verify = sdk.verifySession(verifying)
  const watched: typeof verify = (request, response, next) => {
    asked.push('the SDK')
    return verify(request, response, next)
  }
  return sessionCredential<SessionContainer>(watched, { denylist: { keys: deniedKeys } })
}

/** A refusal of ours by its name, any other answer by its status and body. */
export async function answerTo(
  app: Pick<Receiver, 'raw'>,
  lines: readonly string[],
  method = 'POST',
): Promise<string> {
  const answer = await app.raw({ method, headers: [...lines, 'Content-Length: 0'] })
  const ofOthers = `${answer.split(' ', 2)[1]} ${answer.split('\r\n\r\n')[1]}`
  return REFUSALS.get(answer) ?? ofOthers
}
