import supertokens from 'supertokens-node'
import session from 'supertokens-node/recipe/session'
import { verifySession } from 'supertokens-node/recipe/session/framework/express'

/** Where the sessions of users are made. */
export interface SessionsOptions {
  /** The identity core; its address is the API domain, too. */
  readonly coreUrl: string
  /** Who only verifies sessions needs none. */
  readonly apiKey?: string
}

/** Sets the backend SDK up, once a process, and gives its verifier of sessions. */
export function openSessions({ coreUrl, apiKey }: SessionsOptions) {
  supertokens.init({
    framework: 'express',
    telemetry: false,
    supertokens: { connectionURI: coreUrl, ...(apiKey !== undefined && { apiKey }) },
    appInfo: { appName: 'orders', apiDomain: coreUrl, websiteDomain: coreUrl },
    recipeList: [session.init()],
  })
  return verifySession()
}
