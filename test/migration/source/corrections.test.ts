import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { type Correction, openCorrections } from '../../../src/migration/source/corrections.js'
import { fileOf, MAX_BYTES } from './sources.js'

const SECRET = 'of-a-person'

async function correctionsOf(text: string): Promise<Correction[]> {
  const corrections: Correction[] = []
  const open = openCorrections({ file: await fileOf(text) }, MAX_BYTES)
  for await (const correction of open.corrections()) corrections.push(correction)
  return corrections
}

it('corrections come as what they ask for', async () => {
  const user = { externalUserId: 'a', loginMethods: [] }
  const text = [
    JSON.stringify({ user, replaces: 'a' }),
    '',
    '{"leaveOut":"b","reason":"a test account"}',
    '{"reason":"known","accept":"__proto__"}',
  ].join('\r\n')
  expect(await correctionsOf(text)).toEqual([
    {
      type: 'replace',
      externalUserId: 'a',
      record: { line: 1, value: user, bytes: 40 },
    },
    { type: 'leaveOut', externalUserId: 'b', line: 3, reason: 'a test account' },
    { type: 'accept', externalUserId: '__proto__', line: 4, reason: 'known' },
  ])
})

it('corrections have a digest, and can be read again', async () => {
  const text = '{"accept":"a","reason":"known"}\n'
  const open = openCorrections({ file: await fileOf(text) }, MAX_BYTES)
  for (let time = 0; time < 2; time += 1) {
    for await (const { type } of open.corrections()) expect(type).toBe('accept')
    expect(open.digest()).toBe(createHash('sha256').update(text).digest('hex'))
  }
  expect(open.name).toMatch(/users\.ndjson$/)
})

const GOOD = '{"leaveOut":"a","reason":"gone"}'
const FORMS = 'a correction is'

it.each([
  ['one member', '{"accept":"b"}', FORMS],
  ['an unknown member', '{"accept":"b","reason":"x","note":"y"}', FORMS],
  ['two decisions', '{"accept":"b","leaveOut":"b"}', FORMS],
  ['an empty id', '{"leaveOut":"","reason":"x"}', FORMS],
  ['a user that is a list', '{"replaces":"b","user":[]}', FORMS],
  ['no reason', '{"accept":"b","reason":" "}', 'a reason must'],
  ['a reason too long', `{"accept":"b","reason":"${'x'.repeat(501)}"}`, 'a reason must'],
  ['a user of another id', `{"replaces":"b","user":{"externalUserId":"${SECRET}"}}`, 'it replaces'],
  ['a user without id', '{"replaces":"b","user":{}}', 'it replaces'],
  [
    'a user too large',
    `{"replaces":"b","user":{"externalUserId":"b","x":"${'x'.repeat(MAX_BYTES)}"}}`,
    'longer than 1000',
  ],
  ['the same identity twice', '{"accept":"a","reason":"x"}', 'has a correction already'],
  ['no JSON', `{"accept":${SECRET}}`, 'not JSON'],
])('corrections with %s are refused', async (_, line, message) => {
  const error = await correctionsOf(`${GOOD}\n\n${line}\n`).catch((thrown) => thrown)
  expect(error).toMatchObject({
    name: 'MigrationError',
    code: 'bad_corrections',
    line: 3,
    message: expect.stringContaining(message),
  })
  expect(error.message).not.toContain(SECRET)
})
