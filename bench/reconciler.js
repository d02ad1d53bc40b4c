/*
 * Looks an identity of a migration up, with or without a comparison. Asked over IPC with
 * `{ dist, url, isOurs, turnMs }`; answers with microseconds of processor time for an identity.
 */
import { recordOf } from './migration-record.js'

const AT_ONCE = 8

const user = recordOf(0)
const { externalUserId } = user

async function lookUp(core) {
  const coreUserId = await core.coreIdOf(externalUserId)
  const found = await core.user(coreUserId)
  const ofPublic = await core.rolesOf('public', externalUserId)
  const ofShop = await core.rolesOf('shop', externalUserId)
  const metadata = await core.metadataOf(externalUserId)
  return found !== undefined && ofPublic.length + ofShop.length === 3 && metadata.plan === 'pro'
}

async function takeTurn({ dist, url, isOurs, turnMs }) {
  const { coreClient } = await import(new URL('migration/core/open-core-client.js', dist))
  const { reconcileUser } = await import(new URL('migration/reconcile/reconcile-user.js', dist))
  const core = coreClient({ baseUrl: url, apiKey: 'an-api-key-of-the-benchmark' })
  const work = isOurs
    ? async () => (await reconcileUser(core, { externalUserId, user })).state === 'reconciled'
    : () => lookUp(core)
  const start = process.cpuUsage()
  const end = performance.now() + turnMs
  let identities = 0
  const keepWorking = async () => {
    while (performance.now() < end) {
      if (!(await work())) throw new Error('the account is not that of the record')
      identities += 1
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, keepWorking))
  const { user: inUser, system } = process.cpuUsage(start)
  return { microseconds: (inUser + system) / identities }
}

process.on('message', async (question) => {
  process.send(await takeTurn(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
