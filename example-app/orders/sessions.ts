import supertokens from 'supertokens-node'
import session from 'supertokens-node/recipe/session'
import { verifySession } from 'supertokens-node/recipe/session/framework/express'

/** Where the sessions of users are made. */
export interface SessionsOptions {
  readonly coreUrl: string
  /** The API domain: the `iss` of tokens. */
  readonly issuer: string
  /** Who only verifies sessions needs none. */
  readonly apiKey?: string
}

/** Sets the backend SDK up, once a process, and gives its verifier of sessions. */
export function openSessions({ coreUrl, issuer, apiKey }: SessionsOptions) {
  supertokens.init({
    framework: 'express',
    telemetry: false,
    supertokens: { connectionURI: coreUrl, ...(apiKey !== undefined && { apiKey }) },
    appInfo: { appName: 'orders', apiDomain: issuer, websiteDomain: issuer },
    recipeList: [session.init()],
  })
  return verifySession()
}
