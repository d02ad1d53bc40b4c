/*
 * Reads records of a migration: with `JSON.parse` alone, or with `validateUser` after it. Asked over
 * IPC with `{ dist, validates, turnMs }`; answers with microseconds of processor time for a record.
 */
const RECORDS = 5000

const CONTEXT = {
  tenants: new Set(['public', 'shop']),
  roles: new Set(['customer', 'editor']),
  features: new Set(['account_linking', 'multi_tenancy', 'mfa']),
}

const rows = Array.from({ length: RECORDS }, (_, index) => JSON.stringify(recordOf(index)))
let next = 0

/** An ordinary record: two login methods, a hash, roles and some metadata, 830 characters. */
function recordOf(index) {
  const common = {
    tenantIds: ['public', 'shop'],
    isVerified: true,
    timeJoinedInMSSinceEpoch: 1_600_000_000_000 + index,
    email: `user${index}@example.com`,
  }
  return {
    externalUserId: `auth0|${index.toString(16).padStart(24, '0')}`,
    userMetadata: {
      firstName: 'Ann',
      lastName: 'Example',
      preferences: { language: 'en', theme: 'dark', newsletter: true },
      tags: ['early', 'beta'],
      plan: 'pro',
    },
    userRoles: [
      { role: 'customer', tenantIds: ['public', 'shop'] },
      { role: 'editor', tenantIds: ['shop'] },
    ],
    loginMethods: [
      {
        recipeId: 'emailpassword',
        isPrimary: true,
        passwordHash: `$2a$10$${String(index).padStart(53, 'b')}`,
        hashingAlgorithm: 'bcrypt',
        ...common,
      },
      {
        recipeId: 'thirdparty',
        thirdPartyId: 'google',
        thirdPartyUserId: String(index).padStart(21, '1'),
        ...common,
      },
    ],
  }
}

async function takeTurn({ dist, validates, turnMs }) {
  const { validateUser } = await import(new URL('migration/user/validate-user.js', dist))
  const read = validates
    ? (row) => validateUser(JSON.parse(row), CONTEXT).ok
    : (row) => JSON.parse(row).externalUserId !== undefined
  const start = process.cpuUsage()
  const end = performance.now() + turnMs
  let records = 0
  while (performance.now() < end) {
    for (let count = 0; count < 100; count += 1) {
      if (!read(rows[next])) throw new Error(`record ${next} is invalid`)
      next = (next + 1) % RECORDS
    }
    records += 100
  }
  const { user, system } = process.cpuUsage(start)
  return { microseconds: (user + system) / records }
}

process.on('message', async (question) => {
  process.send(await takeTurn(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
