import { expect, it } from 'vitest'
import type { CallOptions } from '../../../src/migration/core/core-client.js'
import { ENDPOINTS, urlPathOf } from '../../../src/migration/core/endpoints.js'
import { person, sourceOf } from './support/people.js'
import { listOf, scene } from './support/scene.js'

const [METHOD] = person('x').loginMethods
const withEmail = (name: string, email: string) =>
  person(name, { loginMethods: [{ ...METHOD, email }] })
const ROLE = { role: 'editor', tenantIds: ['public', 'public'] }
const DEVICES = ['phone', 'phone '].map((deviceName) => ({ secretKey: 'a-totp-key', deviceName }))

const REFUSED: readonly (readonly [record: { externalUserId: string }, finding: string])[] = [
  [withEmail('\ud800x', 'a@example.com'), 'not_unicode externalUserId'],
  [withEmail('\ud801x', 'b@example.com'), 'not_unicode externalUserId'],
  [withEmail('one', 'ann\ud800@example.com'), 'not_unicode loginMethods[0].email'],
  [withEmail('two', 'ann\ud801@example.com'), 'not_unicode loginMethods[0].email'],
  [withEmail('a\0b', 'c@example.com'), 'nul externalUserId'],
  [withEmail('three', 'ann\0@example.com'), 'nul loginMethods[0].email'],
  [person('four', { userRoles: [ROLE] }), 'duplicate userRoles[0].tenantIds[1]'],
  [person('five', { totpDevices: DEVICES }), 'duplicate totpDevices[1].deviceName'],
]

it('records that the core would break are named by line and field, and the rest is imported', async () => {
  const { open, simulated } = scene({
    async coreIdOf(userId: string, options?: CallOptions) {
      // As the client does.
      urlPathOf(ENDPOINTS.coreIdOf(userId))
      return simulated.coreIdOf(userId, options)
    },
  })
  const records = [person('good'), ...REFUSED.map(([record]) => record), person('better')]
  const migration = await open({ source: sourceOf(records) })

  expect(await migration.run()).toMatchObject({
    state: 'to_correct',
    counts: { invalid: REFUSED.length, reconciled: 2 },
  })
  const invalid = (await listOf(migration.identities())).filter(({ state }) => state === 'invalid')
  expect(invalid.map(({ line, errors = [] }) => [line, ...errors.map(codeAndField)])).toEqual(
    REFUSED.map(([, finding], index) => [index + 2, finding]),
  )
  expect(invalid.flatMap(({ errors = [] }) => errors.map(({ message }) => message))).not.toContain(
    '…',
  )
  expect([...simulated.staged.keys()].sort()).toEqual(['better', 'good'])

  const leftOut = REFUSED.map(([{ externalUserId }]) => ({
    leaveOut: externalUserId,
    reason: 'cannot be stored',
  }))
  expect(await migration.correct(sourceOf(leftOut, 'corrections'))).toMatchObject({
    state: 'complete',
    counts: { left_out: REFUSED.length, reconciled: 2 },
  })
})

const codeAndField = ({ code, field }: { code: string; field: string }) => `${code} ${field}`
