/*
 * A core with one account, that of record 0 of `migration-record.js`: it answers the look-ups of a
 * reconciliation. Tells its address over IPC.
 */
import { createServer } from 'node:http'
import { recordOf } from './migration-record.js'

const CORE_USER_ID = '3f1c0c5e-8a3d-4a36-9a51-0d9a3d2f7c01'

const { externalUserId, userMetadata, loginMethods } = recordOf(0)
const [{ email, tenantIds, timeJoinedInMSSinceEpoch: timeJoined }] = loginMethods
const { thirdPartyId: id, thirdPartyUserId: userId } = loginMethods[1]
const method = { tenantIds, verified: true, timeJoined, email }
const user = {
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
    { ...method, recipeId: 'thirdparty', recipeUserId: 'other', thirdParty: { id, userId } },
  ],
}

const ANSWERS = {
  '/recipe/userid/map': { superTokensUserId: CORE_USER_ID, externalUserId },
  '/user/id': { user },
  '/recipe/user/roles': { roles: ['customer'] },
  '/shop/recipe/user/roles': { roles: ['customer', 'editor'] },
  '/recipe/user/metadata': { metadata: userMetadata },
}
const BODIES = Object.fromEntries(
  Object.entries(ANSWERS).map(([path, body]) => [path, JSON.stringify({ status: 'OK', ...body })]),
)

const server = createServer(({ url }, response) => {
  const path = url.slice(0, url.indexOf('?')).replace(/^\/public\//, '/')
  const body = BODIES[path]
  response
    .writeHead(body === undefined ? 404 : 200, {
      'content-type': 'application/json; charset=UTF-8',
    })
    .end(body ?? 'Not found')
}).listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }))

process.on('disconnect', () => process.exit())
