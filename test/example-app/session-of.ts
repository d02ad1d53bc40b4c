import type { IdentityCore } from '../../example-app/identity-core/identity-core.js'
import { loadModules } from '../support/backend-sdk.js'
import { knowToken } from '../support/secret-search/index.js'
import { API_KEY } from './core-client.js'

/** The token of a new session of a core that has this folder's API key. */
export async function sessionOf(user: string, { url }: IdentityCore): Promise<string> {
  const { supertokens, sessions } = loadModules()
  supertokens.init({
    framework: 'express',
    telemetry: false,
    supertokens: { connectionURI: url, apiKey: API_KEY },
    appInfo: { appName: 'orders', apiDomain: url, websiteDomain: url },
    recipeList: [sessions.init()],
  })
  const id = supertokens.convertToRecipeUserId(user)
  const made = await sessions.createNewSessionWithoutRequestResponse('public', id)
  const token = made.getAccessToken()
  knowToken(token)
  return token
}
