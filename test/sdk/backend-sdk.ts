import { createRequire } from 'node:module'
import type { Express, RequestHandler } from 'express'
import type { SessionContainer } from 'supertokens-node/recipe/session'
import type { IdentityCore } from '../support/core/identity-core/identity-core.js'
import { knowSecret, knowToken } from '../support/secret-search/index.js'

export const API_DOMAIN = 'https://api.example'
const LOGIN_PATH = '/login'

export type TransferMode = 'cookie' | 'header'
export type AntiCsrf = 'VIA_TOKEN' | 'NONE'

/** What the SDK's `verifySession` leaves on a request. */
export type SessionRequest = Parameters<RequestHandler>[0] & { session?: SessionContainer }

/** What a frontend has after its login. */
export interface FrontendSession {
  readonly token: string
  readonly antiCsrf: string | undefined
  /** The headers that the frontend sends with every request. */
  readonly headers: Readonly<Record<string, string>>
}

/** One copy of the SDK, with its settings. */
export interface BackendSdk {
  readonly jwt: typeof import('supertokens-node/recipe/jwt')
  readonly sessions: typeof import('supertokens-node/recipe/session')
  readonly verifySession: Modules['verifier']['verifySession']
  /** Puts the SDK's routes into an app, and a login for any user. */
  mount(app: Express): void
  readonly errorHandler: ReturnType<Modules['express']['errorHandler']>
}

interface Modules {
  readonly supertokens: typeof import('supertokens-node')
  readonly jwt: typeof import('supertokens-node/recipe/jwt')
  readonly sessions: typeof import('supertokens-node/recipe/session')
  readonly express: typeof import('supertokens-node/framework/express')
  readonly verifier: typeof import('supertokens-node/recipe/session/framework/express')
}

/** Opens an SDK for each anti-CSRF mode, on the same core. */
export const openBackendSdks = (core: IdentityCore): Readonly<Record<AntiCsrf, BackendSdk>> => ({
  VIA_TOKEN: openBackendSdk(core, 'VIA_TOKEN'),
  NONE: openBackendSdk(core, 'NONE'),
})

export function openBackendSdk(core: IdentityCore, antiCsrf: AntiCsrf): BackendSdk {
  const { supertokens, jwt, sessions, express, verifier } = loadModules()
  supertokens.init({
    framework: 'express',
    telemetry: false,
    supertokens: { connectionURI: core.url, apiKey: core.apiKey },
    appInfo: { appName: 'orders', apiDomain: API_DOMAIN, websiteDomain: API_DOMAIN },
    recipeList: [sessions.init({ antiCsrf }), jwt.init()],
  })
  const login: RequestHandler = async (request, response, next) => {
    try {
      const user = supertokens.convertToRecipeUserId(String(request.query['user']))
      await sessions.createNewSession(request, response, 'public', user)
      response.end()
    } catch (error) {
      next(error)
    }
  }
  return {
    jwt,
    sessions,
    verifySession: verifier.verifySession,
    mount: (app) => app.use(express.middleware()).post(LOGIN_PATH, login),
    errorHandler: express.errorHandler(),
  }
}

export const SHORT_VALIDITY_SECONDS = 300

export type MintSettings = [validitySeconds?: number | undefined, useStaticSigningKey?: boolean]

/** A token of the SDK's `createJWT`, by default with a short validity and a dynamic key. */
export async function mint(
  sdk: BackendSdk,
  claims: object,
  settings: MintSettings = [SHORT_VALIDITY_SECONDS, false],
): Promise<string> {
  const created = await sdk.jwt.createJWT(claims, ...settings)
  if (created.status !== 'OK') throw new Error(created.status)
  knowToken(created.jwt)
  return created.jwt
}

/** Logs in at an app with the SDK, as a frontend does. */
export async function logIn(
  url: string,
  mode: TransferMode,
  user = 'alice',
): Promise<FrontendSession> {
  const response = await fetch(`${url}${LOGIN_PATH}?user=${user}`, {
    method: 'POST',
    headers: { 'st-auth-mode': mode },
  })
  const cookies = response.headers.getSetCookie().map((line) => line.split(';', 1)[0] ?? '')
  const cookie = cookies.find((each) => each.startsWith('sAccessToken='))
  const token = cookie?.slice('sAccessToken='.length) ?? response.headers.get('st-access-token')
  if (response.status !== 200 || !token) throw new Error(`no session: ${response.status}`)
  const antiCsrf = response.headers.get('anti-csrf') ?? undefined
  knowToken(token)
  if (antiCsrf !== undefined) knowSecret('a token', antiCsrf)
  return { token, antiCsrf, headers: headersOf(mode, token, antiCsrf) }
}

function headersOf(mode: TransferMode, token: string, antiCsrf: string | undefined) {
  return {
    ...(mode === 'cookie'
      ? { cookie: `sAccessToken=${token}` }
      : { authorization: `Bearer ${token}` }),
    ...(antiCsrf === undefined ? {} : { 'anti-csrf': antiCsrf }),
  }
}

/**
 * Loads a new copy of the SDK, because its modules hold its settings and its keys. `init` loads further modules,
 * so the caller must initialise a copy before it loads the next one.
 */
function loadModules(): Modules {
  const load = createRequire(import.meta.url)
  for (const path of Object.keys(load.cache)) {
    if (path.includes('/node_modules/supertokens-node/')) delete load.cache[path]
  }
  return {
    supertokens: load('supertokens-node'),
    jwt: load('supertokens-node/recipe/jwt'),
    sessions: load('supertokens-node/recipe/session'),
    express: load('supertokens-node/framework/express'),
    verifier: load('supertokens-node/recipe/session/framework/express'),
  }
}
