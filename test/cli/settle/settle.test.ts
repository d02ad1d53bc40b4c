import type { RecordView, Store } from 'express-service-auth'
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openStore } from '../../stores/redis/kit.js'
import { startTcpProxy } from '../../support/network/tcp-proxy.js'
import { startRedis } from '../../support/redis/redis.js'
import { expectFailure, runHere } from '../kit.js'
import { ANSWER, BODY, type Made, made, settle, settleRun } from './settle-kit.js'

const server = await startRedis()
afterAll(() => server.stop())
let store: Store
beforeEach(() => {
  store = openStore(server, { timeoutMs: 5000 }).store
})

const nameOf = (record: string): string => `esa:k:${record}`
const contentsOf = (record: string): Promise<string> => server.command('GET', nameOf(record))

type State = Made | 'damaged' | 'of another version' | 'unreadable'

/** The record's name and fence. */
async function recordIn(state: State): Promise<{ record: string; fence: string }> {
  const isFinished = state === 'unreadable'
  const isBroken = isFinished || state === 'damaged' || state === 'of another version'
  const run = await made(store, isBroken ? 'finished' : state)
  const name = nameOf(run.recordId)
  if (isFinished) await server.command('APPEND', name, 'x')
  else if (isBroken) {
    await server.command('SET', name, state === 'damaged' ? 'garbage' : '2|x', 'PX', '90000000')
  }
  return { record: run.recordId, fence: String(isBroken && !isFinished ? 0 : run.fence) }
}

const REASON = 'rolled back by hand'
const FORGET = ['--forget', '--reason', REASON] as const
const ACTIONS = { '--free': ['--free'], '--done': ANSWER, '--forget': FORGET } as const
type Action = keyof typeof ACTIONS
const ENDINGS = { '--free': 'freed', '--done': 'finished', '--forget': 'forgotten' } as const

/** What each state says, and which actions end it. */
const STATES: readonly [State, RegExp, readonly Action[]][] = [
  ['running', /^running, and its lease has \d+ s left$/, []],
  ['abandoned', /^abandoned: its run is gone, and it is unknown/, ['--free', '--done']],
  ['finished', /^finished: its answer is stored$/, ['--forget']],
  ['not_stored', /^not stored: the write happened, but/, ['--done', '--forget']],
  ['freed', /^freed: the next request runs$/, []],
  [
    'unreadable',
    /^unreadable: the write happened, but its result cannot be read$/,
    ['--done', '--forget'],
  ],
  ['damaged', /^unreadable: the whole record is damaged$/, ['--free']],
  ['of another version', /^in the format of version 2: use the command of that version$/, []],
]

describe.each(STATES)('a record that is %s', (state, words, allowed) => {
  it('is shown, with the lines that end it', async () => {
    const { record, fence } = await recordIn(state)
    const before = await contentsOf(record)
    const ran = await settle(server, record)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    const rows = new Map(
      ran.stdout.split('\n').flatMap((line) => {
        const [, name, text] = /^(\w+) {2,}(.*)$/.exec(line) ?? []
        return name === undefined ? [] : [[name, text] as const]
      }),
    )
    expect(rows.get('record')).toBe(record)
    expect(rows.get('state')).toMatch(words)
    expect(rows.get('fence')).toBe(fence)
    if (fence !== '0') expect(rows.get('started')).toMatch(/^20\S+Z, \d+ s ago$/)
    const lines = ran.stdout.split('\n').filter((line) => line.startsWith('  service-auth settle'))
    expect(lines.map((line) => / (--free|--done|--forget) ?/.exec(line)?.[1])).toEqual(allowed)
    for (const line of lines) expect(line).toContain(`--fence ${fence} `)
    expect(ran.stdout).not.toContain(BODY)
    const json = (await settle(server, record, '--json')).json()
    expect(json).toMatchObject({ command: 'settle', ok: true, record })
    expect(json).not.toHaveProperty('done')
    expect((json['view'] as RecordView).fence).toBe(Number(fence))
    expect(await contentsOf(record)).toBe(before)
  })

  it.each(['--free', '--done', '--forget'] as const)(`and what comes of %s`, async (action) => {
    const { record, fence } = await recordIn(state)
    const before = await contentsOf(record)
    const ran = await settle(server, record, '--fence', fence, ...ACTIONS[action])
    if (allowed.includes(action)) {
      const ending = ENDINGS[action]
      expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
      expect(ran.stdout).toMatch(new RegExp(`^${ending}: .*\n$`))
      const view = await store.inspect(record)
      expect(view?.state).toBe(ending === 'finished' ? ending : 'freed')
      expect(view?.reason).toBe(action === '--forget' ? REASON : undefined)
    } else {
      expectFailure(ran, 1, 'nothing changed: the record is ')
      const [why = ''] = ran.stderr.trim().split('the record is ').slice(1)
      expect(why.split('; only')[0]).toMatch(words)
      expect(await contentsOf(record)).toBe(before)
    }
  })

  it('is left alone where the fence is another one', async () => {
    const { record, fence } = await recordIn(state)
    const before = await contentsOf(record)
    for (const action of Object.values(ACTIONS)) {
      const ran = await settle(server, record, '--fence', '17', ...action)
      expectFailure(ran, 1, `the fence of the record is now ${fence}, and the record is`)
    }
    expect(await contentsOf(record)).toBe(before)
  })
})

describe('a record that there is not', () => {
  it.each([[[]], [['--fence', '1', '--free']], [['--fence', '1', ...ANSWER]]])(
    'ends with 1 (%j)',
    async (options) => {
      const record = 'a'.repeat(24)
      const ran = await settle(server, record, ...options)
      expectFailure(ran, 1, 'the record does not exist or has expired')
      const json = (await settle(server, record, '--json', ...options)).json()
      expect(json).toEqual({ command: 'settle', ok: false, record })
    },
  )
})

it('the lines to copy begin no option with the record', async () => {
  const record = '-'.repeat(24)
  await server.command('SET', nameOf(record), 'garbage', 'PX', '60000')
  const { stdout } = await settle(server, record)
  expect(stdout).toContain(`service-auth settle --fence 0 --free -- ${record}\n`)
})

it('the reason is a member of the object, and shown with the record', async () => {
  const run = await made(store, 'finished')
  const reason = 'refunded\u202e; see #12 (ä\u{1f600})'
  const options = ['--json', '--forget', '--reason', reason]
  const { exitCode, json } = await settleRun(server, run, ...options)
  expect(exitCode).toBe(0)
  expect(json()).toMatchObject({ done: 'forgotten', reason, view: { state: 'finished' } })
  expect((await store.inspect(run.recordId))?.reason).toBe(reason)
  const { stdout } = await settle(server, run.recordId)
  expect(stdout).toContain('reason   refunded\\u202e; see #12 (ä\u{1f600})\n')
  const other = await made(store, 'abandoned')
  const freed = await settleRun(server, other, '--free', '--reason', 'nothing there')
  expect(freed.stdout).toBe(
    'freed: the write did not happen, and the next retry runs (nothing there)\n',
  )
  expect((await store.inspect(other.recordId))?.reason).toBe('nothing there')
})

describe('Redis unreachable', () => {
  it('ends with 3, and nothing was changed', async () => {
    for (const options of [[], ['--fence', '1', '--free']]) {
      const argv = ['settle', '--timeout=50ms', ...options, 'a'.repeat(24)]
      const ran = await runHere(argv, { env: { REDIS_URL: 'redis://127.0.0.1:1' } })
      expectFailure(ran, 3, '; nothing changed')
    }
  })

  it('while it writes ends with 3, and says that it is not known', async () => {
    const proxy = await startTcpProxy(server)
    onTestFinished(() => proxy.close())
    const run = await made(store, 'abandoned')
    // What Redis answers to the write.
    proxy.loseReplies(':1\r\n')
    const ran = await settleRun(proxy, run, '--free')
    expectFailure(ran, 3, 'it is unknown whether the change was written; check: settle with')
    expect((await store.inspect(run.recordId))?.state).toBe('freed')
  })

  it('because it is full ends with 3, and nothing was changed', async () => {
    const run = await made(store, 'abandoned')
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    const ran = await settleRun(server, run, ...ANSWER)
    await server.command('CONFIG', 'SET', 'maxmemory', '0')
    expectFailure(ran, 3, /OOM.*; nothing changed$/m)
    expect((await store.inspect(run.recordId))?.state).toBe('abandoned')
  })
})
