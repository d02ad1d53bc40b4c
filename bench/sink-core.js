/*
 * A core that takes whatever is staged and keeps nothing: its answers have the form of the real ones.
 * Tells its address over IPC.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'

const ROUTES = {
  '/bulk-import/users/count': () => ({ count: 0 }),
  '/recipe/multitenancy/tenant/list/v2': () => ({
    tenants: ['public', 'shop'].map((tenantId) => ({ tenantId })),
  }),
  '/recipe/roles': () => ({ roles: ['customer', 'editor'] }),
  '/ee/featureflag': () => ({ features: ['account_linking', 'multi_tenancy', 'mfa'] }),
  '/recipe/userid/map': () => ({ status: 'UNKNOWN_MAPPING_ERROR' }),
  '/users/by-accountinfo': () => ({ users: [] }),
}

const staged = ({ externalUserId, loginMethods }) => ({
  userId: externalUserId,
  loginMethods: loginMethods.map(({ recipeId, tenantIds }) => ({
    recipeId,
    userId: randomUUID(),
    tenants: tenantIds,
  })),
})

function answerTo(method, path, text) {
  if (path !== '/bulk-import/users') return ROUTES[path]?.()
  return { users: method === 'POST' ? JSON.parse(text).users.map(staged) : [] }
}

const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const [url] = request.url.split('?')
  const path = url.replace(/^\/(public|shop)\//, '/')
  const answer = answerTo(request.method, path, Buffer.concat(chunks).toString())
  response
    .writeHead(answer === undefined ? 404 : 200, {
      'content-type': 'application/json; charset=UTF-8',
    })
    .end(answer === undefined ? 'Not found' : JSON.stringify({ status: 'OK', ...answer }))
}).listen(0, '127.0.0.1', () => process.send({ url: `http://127.0.0.1:${server.address().port}` }))

process.on('disconnect', () => process.exit())
