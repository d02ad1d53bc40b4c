import supertokens from 'supertokens-node'
import session from 'supertokens-node/recipe/session'
import { knowToken } from '../support/secret-search/index.js'

/** The token of a new session, by the backend SDK as `openSessions` has set it up. */
export async function sessionOf(user: string): Promise<string> {
  const id = supertokens.convertToRecipeUserId(user)
  const made = await session.createNewSessionWithoutRequestResponse('public', id)
  const token = made.getAccessToken()
  knowToken(token)
  return token
}
