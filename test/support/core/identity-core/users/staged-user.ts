import type { ImportedUser, LoginMethod } from './imported-user.js'

/** Returns the answer to staging; the core spells some members differently than in the request. */
export function toStagedUser({ id, externalUserId, loginMethods }: ImportedUser): object {
  return { userId: externalUserId ?? id, loginMethods: loginMethods.map(toStagedMethod) }
}

function toStagedMethod(method: LoginMethod): object {
  const { recipeId, superTokensUserId, tenantIds: tenants, email = null } = method
  const common = { recipeId, userId: superTokensUserId, tenants, email }
  if (recipeId === 'passwordless') return { ...common, phoneNumber: method.phoneNumber ?? null }
  if (recipeId !== 'thirdparty') return common
  const { thirdPartyId: thirdpartyId, thirdPartyUserId: thirdpartyUserId } = method
  return { ...common, thirdpartyId, thirdpartyUserId }
}
