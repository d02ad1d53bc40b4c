import { randomUUID } from 'node:crypto'
import express5, { type RequestHandler } from 'express'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { MigrationDecision } from '../../../src/base/decision/migration-event.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import type {
  LegacyUser,
  MigrationEndpointOptions,
} from '../../../src/migration/endpoint/endpoint-options.js'
import { migrationEndpoint } from '../../../src/migration/endpoint/migration-endpoint.js'
import type { ExpressModule } from '../../support/receiver/express-majors.js'
import { openReceiver, type Receiver } from '../../support/receiver/open-receiver.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { API_KEY, closedAtEnd, type GatedCore } from './gated-core.js'

const secret = (kind: string, text: string): string => {
  knowSecret(kind, text)
  return text
}

export const TOKEN: string = secret('a token', `one-${randomUUID()}`)
export const OTHER_TOKEN: string = secret('a token', `other-${randomUUID()}`)
/** Of bcrypt's form. */
export const HASH: string = secret(
  'an encryption key',
  `$2b$10$${randomUUID().replaceAll('-', '')}.${randomUUID().replaceAll('-', '').slice(0, 20)}`,
)
export const ISSUER = 'https://legacy.example.com/'
export const OTHER_ISSUER = 'https://other.example.com/'

export const PASSWORD_LOGIN = { provider: 'auth0', connection: 'users' }
export const SOCIAL_LOGIN = { provider: 'google-oauth2', connection: 'google' }

/** A user that may come over, as `loadUser` gives it. */
export const legacyUser = (id: string): LegacyUser => ({
  identities: [
    {
      ...PASSWORD_LOGIN,
      userId: id,
      email: `${id}@example.com`,
      passwordHash: HASH,
      hashingAlgorithm: 'bcrypt',
    },
  ],
})

/** What the hook sends about this user. */
export const bodyAbout = (id: string, more: object = {}): Record<string, unknown> => ({
  externalUserId: id,
  identities: [{ ...PASSWORD_LOGIN, userId: id }],
  ...more,
})

export const newId = (): string => `user-${randomUUID()}`

/** The one answer to whatever has failed. */
export const UNAVAILABLE = {
  status: 503,
  text: '{"type":"about:blank","title":"Service Unavailable","status":503}',
}

const points = () => new RateLimiterMemory({ points: 1_000_000, duration: 60 })

export interface Endpoint extends Receiver {
  readonly decisions: MigrationDecision[]
  /** Sends a body, as JSON where it is no string. */
  post(body: unknown, given?: PostOptions): Promise<EndpointReply>
}

interface PostOptions {
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
}

interface EndpointReply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface EndpointOptions {
  readonly express?: ExpressModule
  /** Before the endpoint. */
  readonly before?: readonly RequestHandler[]
  readonly options?: Partial<MigrationEndpointOptions>
}

export const endpointOptions = (coreUrl: string): MigrationEndpointOptions => ({
  core: coreClient({ baseUrl: coreUrl, apiKey: API_KEY }),
  issuers: {
    [ISSUER]: {
      tokens: [TOKEN],
      organizations: { acme: ['tenant-a'], globex: ['tenant-b', 'tenant-c'] },
      withoutOrganization: ['public'],
      connections: [
        { ...PASSWORD_LOGIN, as: { recipeId: 'emailpassword' } },
        { ...SOCIAL_LOGIN, as: { recipeId: 'thirdparty', thirdPartyId: 'google' } },
      ],
    },
    [OTHER_ISSUER]: {
      tokens: [OTHER_TOKEN],
      withoutOrganization: ['public'],
      connections: [{ ...PASSWORD_LOGIN, as: { recipeId: 'emailpassword' } }],
    },
  },
  loadUser: ({ externalUserId }) => legacyUser(externalUserId),
  limits: { credential: points(), user: points() },
})

export async function openEndpoint(
  core: GatedCore,
  { express = express5, before = [], options = {} }: EndpointOptions = {},
): Promise<Endpoint> {
  const decisions: MigrationDecision[] = []
  const receiver = closedAtEnd(
    await openReceiver({
      express,
      mount(app) {
        app.disable('x-powered-by')
        for (const middleware of before) app.use(middleware)
        app.use(
          '/migrate',
          migrationEndpoint({
            ...endpointOptions(core.url),
            onDecision: (decision) => void decisions.push(decision),
            ...options,
          }),
        )
      },
    }),
  )
  return Object.assign(receiver, {
    decisions,
    async post(body: unknown, given: PostOptions = {}): Promise<EndpointReply> {
      const { method = 'POST', headers = {} } = given
      const token = 'token' in given ? given.token : TOKEN
      const response = await fetch(`${receiver.url}/migrate`, {
        method,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          'content-type': 'application/json; charset=utf-8',
          ...headers,
        },
        ...(method !== 'GET' &&
          method !== 'HEAD' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      return {
        status: response.status,
        headers: response.headers,
        text: await response.text(),
      }
    },
  })
}
