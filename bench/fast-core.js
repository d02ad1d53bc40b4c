/*
 * A core without a database: what it costs can be neglected beside its caller. It accepts every user of
 * `migration-record.js` and imports at once. Sends its address over IPC.
 */
import { createServer } from 'node:http'
import { recordOf } from './migration-record.js'

const APP = ['public', 'shop']
const CORE_ID_PREFIX = '3f1c0c5e-8a3d-4a36-9a51-'

const imported = new Set()

const indexOf = (externalUserId) => Number.parseInt(externalUserId.slice('auth0|'.length), 16)
const coreIdOf = (externalUserId) => CORE_ID_PREFIX + externalUserId.slice(-12)

/** By path without the tenant; a reply is `undefined` where the path is unknown. */
const ROUTES = {
  '/bulk-import/users/count': () => ({ count: 0 }),
  '/bulk-import/users': ({ users }) => ({ users: users?.map(importUser) ?? [] }),
  '/recipe/multitenancy/tenant/list/v2': () => ({
    tenants: APP.map((tenantId) => ({ tenantId })),
  }),
  '/recipe/roles': () => ({ roles: ['customer', 'editor'] }),
  '/ee/featureflag': () => ({ features: ['account_linking', 'multi_tenancy', 'mfa'] }),
  '/users/by-accountinfo': () => ({ users: [] }),
  '/recipe/userid/map': ({ userId }) =>
    imported.has(userId)
      ? { superTokensUserId: coreIdOf(userId), externalUserId: userId }
      : { status: 'UNKNOWN_MAPPING_ERROR' },
  '/user/id': ({ userId }) => ({ user: accountOf(userId) }),
  '/recipe/user/roles': ({ tenantId }) => ({
    roles: tenantId === 'shop' ? ['customer', 'editor'] : ['customer'],
  }),
  '/recipe/user/metadata': ({ userId }) => ({ metadata: recordOf(indexOf(userId)).userMetadata }),
}

function importUser({ externalUserId, loginMethods }) {
  imported.add(externalUserId)
  const methods = loginMethods.map(({ recipeId, tenantIds }, index) => ({
    recipeId,
    userId: index === 0 ? coreIdOf(externalUserId) : `other-${externalUserId}`,
    tenants: tenantIds,
  }))
  return { userId: externalUserId, loginMethods: methods }
}

function accountOf(coreUserId) {
  const { externalUserId, loginMethods } = recordOf(
    Number.parseInt(coreUserId.slice(CORE_ID_PREFIX.length), 16),
  )
  const [{ email, tenantIds, timeJoinedInMSSinceEpoch: timeJoined }] = loginMethods
  const { thirdPartyId: id, thirdPartyUserId: userId } = loginMethods[1]
  const method = { tenantIds, verified: true, timeJoined, email }
  const other = { recipeUserId: `other-${externalUserId}`, thirdParty: { id, userId } }
  return {
    id: externalUserId,
    isPrimaryUser: true,
    tenantIds,
    timeJoined,
    emails: [email],
    phoneNumbers: [],
    thirdParty: [{ id, userId }],
    webauthn: { credentialIds: [] },
    loginMethods: [
      { ...method, recipeId: 'emailpassword', recipeUserId: externalUserId },
      { ...method, recipeId: 'thirdparty', ...other },
    ],
  }
}

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const { pathname, searchParams } = new URL(request.url, 'http://core')
  const [, tenantId, path] = /^(?:\/(public|shop))?(\/.*)$/.exec(pathname)
  const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : {}
  const reply = ROUTES[path]?.({ ...Object.fromEntries(searchParams), ...body, tenantId })
  response
    .writeHead(reply === undefined ? 404 : 200, {
      'content-type': 'application/json; charset=UTF-8',
    })
    .end(reply === undefined ? 'Not found' : JSON.stringify({ status: 'OK', ...reply }))
}).listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }))

process.on('disconnect', () => process.exit())
