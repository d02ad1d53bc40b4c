import { randomBytes } from 'node:crypto'
import {
  encryptedStore,
  type IdempotencyStore,
  type RecordView,
  type Store,
} from 'express-service-auth'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { openStore } from '../../stores/redis/kit.js'
import { startRedis } from '../../support/redis/redis.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { expectFailure, temporaryFile } from '../kit.js'
import { ANSWER, BODY, made, settle, settleRun } from './settle-kit.js'

const KEYS = { june: randomBytes(32), july: randomBytes(32) }
for (const key of Object.values(KEYS)) knowSecret('an encryption key', key)

const textOf = (key: Uint8Array): string => Buffer.from(key).toString('base64url')
const fileOf = (keys: Readonly<Record<string, Uint8Array>>, current: string): Promise<string> => {
  const texts = Object.entries(keys).map(([id, key]) => [id, textOf(key)])
  return temporaryFile(JSON.stringify({ current, keys: Object.fromEntries(texts) }))
}

const server = await startRedis()
afterAll(() => server.stop())
let plain: Store
let encrypted: IdempotencyStore
beforeEach(() => {
  plain = openStore(server, { timeoutMs: 5000 }).store
  encrypted = encryptedStore(plain, { keys: KEYS, current: 'june' })
})

const contentsOf = (record: string): Promise<string> => server.command('GET', `esa:k:${record}`)
const viewFrom = async (record: string, ...options: string[]): Promise<RecordView> =>
  (await settle(server, record, '--json', ...options)).json()['view'] as RecordView

async function findAgain(store: IdempotencyStore, run: { recordId: string; fingerprint: string }) {
  const [owner, leaseMs, retentionMs, rerunAbandoned] = ['b', 1000, 60_000, true] as const
  const { recordId, fingerprint } = run
  return store.reserve({ recordId, fingerprint, owner, leaseMs, retentionMs, rerunAbandoned })
}

describe('an abandoned record of an encrypted store', () => {
  it('is not done without a word about its keys', async () => {
    const run = await made(encrypted, 'abandoned')
    const { stdout } = await settle(server, run.recordId)
    expect(stdout).toMatch(/^key +june$/m)
    expect(stdout).toMatch(/--done STATUS .* --body FILE --keys FILE/)
    const ran = await settleRun(server, run, ...ANSWER)
    expectFailure(ran, 2, '--done needs --keys: the store encrypts with the key june;')
    expect((await plain.inspect(run.recordId))?.state).toBe('abandoned')
  })

  it('is done with the keys, encrypted by the current one', async () => {
    const run = await made(encrypted, 'abandoned')
    const file = await fileOf(KEYS, 'july')
    const body = ['--body', await temporaryFile(BODY)]
    const ran = await settleRun(server, run, '--keys', file, ...ANSWER, ...body)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await contentsOf(run.recordId)).not.toContain(BODY)
    expect(await findAgain(encrypted, run)).toMatchObject({ outcome: 'finished' })
    const { stdout } = await settle(server, run.recordId, '--keys', file)
    expect(stdout).toMatch(/^state +finished: its answer is stored$/m)
    expect(stdout).toMatch(/^key +july$/m)
  })

  it('is freed without the keys', async () => {
    const run = await made(encrypted, 'abandoned')
    const ran = await settleRun(server, run, '--free')
    expect(ran).toMatchObject({ exitCode: 0 })
    expect(await findAgain(encrypted, run)).toMatchObject({ outcome: 'reserved' })
  })
})

it.each([
  ['without keys', async () => []],
  ['with keys', async () => ['--keys', await fileOf(KEYS, 'june')]],
  ['with other keys', async () => ['--keys', await fileOf({ july: KEYS.july }, 'july')]],
])('a finished record of an encrypted store is forgotten %s', async (_name, keysOf) => {
  const run = await made(encrypted, 'finished')
  const options = ['--forget', '--reason', 'refunded', ...(await keysOf())]
  const ran = await settleRun(server, run, ...options)
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  expect(ran.stdout).toBe('forgotten: the next request runs the handler again (refunded)\n')
  expect((await plain.inspect(run.recordId))?.reason).toBe('refunded')
  expect(await findAgain(encrypted, run)).toMatchObject({ outcome: 'reserved' })
})

it('an abandoned record of a store that does not encrypt is done without keys, given or not', async () => {
  const keys = ['--keys', await fileOf(KEYS, 'july')]
  for (const options of [[], keys]) {
    const run = await made(plain, 'abandoned')
    const ran = await settleRun(server, run, ...ANSWER, ...options)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect((await viewFrom(run.recordId)).keyId).toBeUndefined()
    expect(await findAgain(plain, run)).toMatchObject({ outcome: 'finished' })
  }
})

describe('a result that opens is never written over', () => {
  it.each([
    ['encrypted, with the keys', () => encrypted, async () => fileOf(KEYS, 'july')],
    ['plain, with the keys', () => plain, async () => fileOf(KEYS, 'july')],
    ['plain, with other keys', () => plain, async () => fileOf({ x: KEYS.july }, 'x')],
  ] as const)('where it is %s', async (_how, store, keys) => {
    const run = await made(store(), 'finished')
    const before = await contentsOf(run.recordId)
    const ran = await settleRun(server, run, ...ANSWER, '--keys', await keys())
    expectFailure(
      ran,
      1,
      /the record is finished: its answer is stored; only --forget settles it$/m,
    )
    expect(await contentsOf(run.recordId)).toBe(before)
  })
})

describe('a result that does not open', () => {
  it('because its key is not given is shown so, and not replaced', async () => {
    const run = await made(encrypted, 'finished')
    const { recordId } = run
    expect((await viewFrom(recordId)).state).toBe('finished')
    const unsure = await settle(server, recordId)
    expect(unsure.stdout).toMatch(/^state +finished: its answer is stored$/m)
    expect(unsure.stdout).toMatch(
      /^key +june; use --keys to check whether the result can be decrypted$/m,
    )
    const withoutJune = ['--keys', await fileOf({ july: KEYS.july }, 'july')]
    expect((await viewFrom(recordId, ...withoutJune)).state).toBe('unreadable')
    const { stdout } = await settle(server, recordId, ...withoutJune)
    expect(stdout).toMatch(/^key +june, which the --keys file lacks$/m)
    expect(stdout).toMatch(/The key june is needed .*: add it to the --keys file/)
    expect(stdout).not.toContain('--done')
    const before = await contentsOf(recordId)
    const ran = await settleRun(server, run, ...withoutJune, ...ANSWER)
    expectFailure(ran, 2, 'the --keys file lacks the key june, ')
    expect((await settleRun(server, run, ...withoutJune, '--free')).exitCode).toBe(1)
    expect(await contentsOf(recordId)).toBe(before)
  })

  it('because its key is another one now is done', async () => {
    const run = await made(encrypted, 'finished')
    const file = await fileOf({ june: randomBytes(32), july: KEYS.july }, 'july')
    const ran = await settleRun(server, run, '--keys', file, ...ANSWER)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(await findAgain(encrypted, run)).toMatchObject({ outcome: 'finished' })
  })

  it('because it is damaged is done with the keys alone', async () => {
    const run = await made(encrypted, 'finished')
    await server.command('APPEND', `esa:k:${run.recordId}`, 'x')
    expect(await settleRun(server, run, ...ANSWER)).toMatchObject({ exitCode: 2 })
    const keys = ['--keys', await fileOf(KEYS, 'june')]
    expect((await settleRun(server, run, ...ANSWER, ...keys)).exitCode).toBe(0)
  })
})

describe('the --keys file', () => {
  const good = textOf(KEYS.june)
  it.each<[string, unknown]>([
    ['no object', [good]],
    ['without current', { keys: { june: good } }],
    ['with a current that is none', { current: 'july', keys: { june: good } }],
    ['with something else', { current: 'june', keys: { june: good }, more: good }],
    ['with a key of 31 bytes', { current: 'june', keys: { june: textOf(KEYS.june).slice(2) } }],
    ['with a key for an id', { current: good, keys: { [good]: 'june' } }],
  ])('is refused %s', async (_what, contents) => {
    const { recordId } = await made(encrypted, 'abandoned')
    const file = await temporaryFile(JSON.stringify(contents))
    const ran = await settle(server, recordId, '--keys', file)
    expectFailure(ran, 2, 'the --keys file must contain ')
  })

  it('is refused when others can read it', async () => {
    const text = JSON.stringify({ current: 'june', keys: { june: good } })
    const file = await temporaryFile(text, 0o640)
    const ran = await settle(server, 'a'.repeat(24), '--keys', file)
    expectFailure(ran, 2, 'other users can read or change the --keys file')
  })
})
