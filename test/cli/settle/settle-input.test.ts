import { randomUUID } from 'node:crypto'
import type { Run, Store } from 'express-service-auth'
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { deriveRecordId, operationOf } from '../../../src/idempotency/fingerprint.js'
import { begin, openStore, requestFor } from '../../stores/redis/kit.js'
import { startRedis } from '../../support/redis/redis.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { expectFailure, runBoth } from '../kit.js'
import { made, settleBy } from './settle-kit.js'

const server = await startRedis()
afterAll(() => server.stop())
let store: Store
let run: Run
beforeEach(async () => {
  store = openStore(server, { timeoutMs: 5000 }).store
  do run = await made(store, 'abandoned')
  while (run.recordId.startsWith('-'))
  onTestFinished(async () => {
    expect((await store.inspect(run.recordId))?.state).toBe('abandoned')
  })
})

const settle = (argv: readonly string[], stdin = '') => settleBy(server, argv, stdin)

async function expectRefused(argv: readonly string[], why: string, stdin = ''): Promise<void> {
  const env = { REDIS_URL: `redis://127.0.0.1:${server.port}` }
  const ran = await runBoth(['settle', ...argv], { stdin, env })
  expectFailure(ran, 2, why)
  expect(ran.object).toMatchObject({ ok: false, error: { code: expect.any(String) } })
}

const LONG = 'r'.repeat(257)

describe('what is wrong of an order ends with 2, one line, and nothing changed', () => {
  it.each<[string, readonly string[], string]>([
    ['--done without a fence', ['--done', '201'], '--done needs --fence N: settle with the record'],
    [
      '--forget and --free',
      ['--fence', '1', '--free', '--forget', '--reason', 'x'],
      'use one of --free, --forget and --done STATUS',
    ],
    ['--forget without a reason', ['--fence', '1', '--forget'], '--forget needs --reason TEXT'],
    [
      'a long reason',
      ['--fence', '1', '--forget', '--reason', LONG],
      '--reason must be a well-formed',
    ],
    ['--body with --forget', ['--fence', '1', '--forget', '--body', 'x'], '--body requires --done'],
    ['a fence that is no number', ['--fence', 'hunter2', '--free'], '--fence must be an integer'],
    ['a fence with a fraction', ['--fence', '1.5', '--free'], '--fence must be an integer'],
    ['a fence too large', ['--fence', '9007199254740993', '--free'], '--fence must be an integer'],
    ...['199', '1000', '2e2'].map((status): [string, string[], string] => [
      `the status ${status}`,
      ['--fence', '1', '--done', status],
      '--done must be a status from 200 to 999',
    ]),
    ...[
      [': hunter2', '--header must be a line'],
      ['a b: hunter2', '--header must be a line'],
      ['a: hunter2\nb: c', '--header must be a line'],
      ['a: hunter2\u0107', '--header must be a line'],
      ['Set-Cookie: hunter2=1', 'not set-cookie, content-length or a hop-by-hop'],
      ['transfer-encoding : hunter2', 'not set-cookie, content-length or a hop-by-hop'],
      ['Content-Length: 7', 'not set-cookie, content-length'],
    ].map(([line = '', why = '']): [string, string[], string] => [
      `the header ${JSON.stringify(line)}`,
      ['--fence', '1', '--done', '201', '--header', 'x: y', '--header', line],
      why,
    ]),
    ['no body there', ['--fence', '1', '--done', '201', '--body', '/no'], 'the --body file'],
    [
      'a body with 204',
      ['--fence', '1', '--done', '204', '--body', '/no'],
      '204 cannot have a body',
    ],
    ['a key where none goes', ['--caller', 'billing'], '--caller requires --key-stdin'],
  ])('%s', async (_what, options, why) => {
    await expectRefused([run.recordId, ...options], why)
  })
})

describe('what names no record ends with 2', () => {
  const ISSUER = ['--issuer', 'https://i']
  const scope = ['--audience', 'a', '--caller', 'c', ...ISSUER]
  const byName = [...scope, '--operation', 'o']
  it.each<[string, readonly string[], string, string?]>([
    ['nothing', [], 'a record is missing: add RECORD, as in the events, or --key-stdin'],
    ['a key', [randomUUID()], 'the name of a record has 24 characters'],
    ['a record with another character', [`${'a'.repeat(23)}/`], 'the name of a record has 24'],
    ['two records', ['a'.repeat(24), 'b'.repeat(24)], 'too many arguments besides the options'],
    ['both', ['a'.repeat(24), '--key-stdin', ...byName], 'either RECORD or --key-stdin'],
    ['no operation', ['--key-stdin', ...scope], 'use either --operation NAME or --method METHOD'],
    ['two operations', ['--key-stdin', ...byName, '--mount', ''], '--mount requires --method'],
    ['a part of one', ['--key-stdin', ...scope, '--mount', ''], 'use either --operation NAME'],
    ['no mount', ['--key-stdin', ...scope, '--method', 'M', '--route', '/'], '--mount is missing'],
    ['no caller', ['--key-stdin', '--operation', 'o', ...ISSUER], '--caller is missing'],
    [
      'no issuer',
      ['--key-stdin', '--operation', 'o', '--caller', 'c'],
      'use either --issuer URL or',
    ],
    [
      'no audience',
      ['--key-stdin', '--operation', 'o', '--caller', 'c', ...ISSUER],
      '--audience is missing',
    ],
    ['an empty key', ['--key-stdin', ...byName], 'standard input is empty'],
    ['a key of two words', ['--key-stdin', ...byName], 'does not contain a key', 'hunter2 hunter2'],
    ['a key quoted badly', ['--key-stdin', ...byName], 'does not contain a key', '"hunter2'],
  ])('%s', async (_what, argv, why, stdin = '') => {
    await expectRefused(argv, why, stdin)
  })
})

it.each([
  ['a name', 'orders', ['--operation', 'orders']],
  [
    'method, mount and route',
    operationOf('POST', '/v1', '/orders/:id'),
    ['--method', 'post', '--mount', '/v1', '--route', '/orders/:id'],
  ],
])('a key is found by %s, and freed, without a word of it', async (_how, operation, options) => {
  const key = randomUUID()
  knowSecret('an idempotency key', key)
  const scope = { issuer: 'https://core.test', audience: 'orders', caller: 'billing', operation }
  const record = deriveRecordId(scope, key)
  const found = await begin(store, requestFor({ recordId: record }))
  await store.settle(found, { type: 'abandoned' })
  const { issuer, audience, caller } = scope
  const named = ['--issuer', issuer, '--audience', audience, '--caller', caller, ...options]
  const shown = await settle(['--key-stdin', '--json', ...named], `${key}\n`)
  expect(shown.json()).toMatchObject({ record, view: { state: 'abandoned', fence: found.fence } })
  const order = ['--fence', String(found.fence), '--free']
  const ran = await settle(['--key-stdin', ...named, ...order], `"${key}"`)
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  expect((await store.inspect(record))?.state).toBe('freed')
  expect(shown.stdout + ran.stdout).not.toContain(key)
})
