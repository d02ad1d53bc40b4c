import { Console } from 'node:console'
import { channel } from 'node:diagnostics_channel'
import { Writable } from 'node:stream'
import express from 'express'
import {
  type Logger,
  type LogOptions,
  logDecisions,
  memoryStore,
  requirePermissions,
  serviceAuth,
} from 'express-service-auth'
import { pino } from 'pino'
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { openGatedCore } from '../../migration/endpoint/gated-core.js'
import { bodyAbout, openEndpoint } from '../../migration/endpoint/kit.js'
import { scene } from '../../migration/run/support/scene.js'
import { issuer } from '../../support/issuer/issuer.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { collectUnhandledErrors } from '../../support/observe/unhandled-errors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import {
  authFor,
  type Receiver,
  startBehind,
  startOrders,
} from '../../support/receiver/receiver.js'
import { leaveChannels, recordOutput } from '../../support/secret-search/index.js'
import { watchedStore } from '../../support/stores/watched-store.js'
import { throwing } from '../../support/throwing.js'
import { issuerBehindSecretQuery } from '../secret-query.js'

leaveChannels()

type Entry = readonly [level: string, event: Record<string, unknown>, message: string]

const CHANNELS = ['decision', 'keys', 'idempotency', 'denylist', 'store', 'migration'].map((name) =>
  channel(`express-service-auth:${name}`),
)
const areObserved = (): boolean[] => CHANNELS.map(({ hasSubscribers }) => hasSubscribers)

// Its key set is shared: the first fetch is told once.
beforeAll(() => serviceAuth(issuer.policy()).ready())

/** A logger whose functions need it as `this`. */
class Journal implements Logger {
  readonly entries: Entry[] = []

  info(event: object, message: string): void {
    this.#note('info', event, message)
  }

  warn(event: object, message: string): void {
    this.#note('warn', event, message)
  }

  error(event: object, message: string): void {
    this.#note('error', event, message)
  }

  #note(level: string, event: object, message: string): void {
    recordOutput('the log', [event, message])
    this.entries.push([level, event as Record<string, unknown>, message])
  }
}

function log(logger: Logger, options?: LogOptions): () => void {
  const stop = logDecisions(logger, options)
  onTestFinished(stop)
  return stop
}

function openReads(): Promise<Receiver> {
  return startBehind(express, authFor(issuer.policy()), requirePermissions('orders:read'))
}

it('writes refusals at warn and faults of this side at error, and not what was accepted', async () => {
  const journal = new Journal()
  log(journal)
  const own = await createTestIssuer()
  onTestFinished(() => own.close())
  own.down()
  const cut = await startBehind(express, authFor(own.policy()))
  const receiver = await openReads()
  await receiver.call(issuer.token({ permissions: ['orders:read'] }))
  await receiver.call(issuer.token({ permissions: [] }))
  await receiver.call(issuer.token({ sub: 'stranger\nwith a line of its own' }))
  await cut.call(own.token())
  expect(journal.entries.map(([level, , message]) => [level, message])).toEqual([
    ['warn', 'requirePermissions refused a request: permission_missing.'],
    ['warn', 'serviceAuth refused a request: caller_not_approved.'],
    ['error', 'The key set could not be fetched: network.'],
    ['error', 'serviceAuth could not decide on a request: key_set_unavailable.'],
  ])
  expect(journal.entries[0]?.[1]).toMatchObject({ caller: 'billing', permission: 'orders:read' })
})

it('writes what was accepted too, where that is wanted', async () => {
  const journal = new Journal()
  log(journal, { accepted: true })
  const receiver = await openReads()
  await receiver.call(issuer.token({ permissions: ['orders:read'] }))
  expect(journal.entries.map(([level, , message]) => [level, message])).toEqual([
    ['info', 'serviceAuth accepted a request.'],
    ['info', 'requirePermissions accepted a request.'],
  ])
})

it('writes each change of keys at info, with the address without its query', async () => {
  const journal = new Journal()
  log(journal)
  const { own, keySet } = await issuerBehindSecretQuery()
  await keySet.ready()
  const [line] = journal.entries
  expect(line?.[0]).toBe('info')
  expect(line?.[1]).toMatchObject({ type: 'fetched', jwksUri: own.jwksUri })
  expect(line?.[1]['added']).toContain(own.kid)
  expect(journal.entries).toHaveLength(1)
})

it.each([false, true])('tells of writes, each fault once, with accepted: %s', async (accepted) => {
  const journal = new Journal()
  log(journal, { accepted })
  const store = watchedStore(memoryStore())
  const receiver = await startOrders({
    express,
    store,
    handler: (_req, res) => void res.status(201).json({}),
  })
  const key = newKey()
  await call(receiver.port, { key })
  await call(receiver.port, { key })
  await call(receiver.port, { key, path: '/orders/2' })
  store.fail('settle')
  await call(receiver.port, { key: newKey() })
  store.fail('reserve')
  await call(receiver.port, { key })
  const written = journal.entries
    .filter(([, event]) => event['by'] !== 'serviceAuth')
    .map(([level, event]) => `${level} ${event['reason']}`)
  const faults = ['warn key_reused', 'error result_lost', 'error store_unavailable']
  const all = ['info reserved', 'info result_kept', 'info replayed', 'warn key_reused']
  all.push('info reserved', 'error result_lost', 'error store_unavailable')
  expect(written).toEqual(accepted ? all : faults)
  expect(JSON.stringify(journal.entries)).not.toContain(key)
})

const ended = (reason: string): object => ({
  by: 'requireIdempotencyKey',
  outcome: 'accepted',
  reason,
})

const KEYS_CHANGE = { type: 'fetched', added: [], replaced: [], removed: [], jwksUri: 'https://c' }

it.each<[string, object, string | undefined]>([
  ['keys', KEYS_CHANGE, undefined],
  ['keys', { ...KEYS_CHANGE, replaced: ['a'] }, 'info'],
  ['keys', { ...KEYS_CHANGE, removed: ['a'] }, 'info'],
  ['keys', { type: 'not_modified', jwksUri: 'https://c' }, undefined],
  ['keys', { type: 'key_skipped', reason: 'not_rsa', jwksUri: 'https://c' }, 'warn'],
  ['keys', { type: 'budget_exhausted', jwksUri: 'https://c' }, 'warn'],
  ['keys', { type: 'expired', jwksUri: 'https://c' }, 'error'],
  ['store', { operation: 'renew', ok: true, durationMs: 1 }, undefined],
  ['store', { operation: 'consume', ok: false, durationMs: 1 }, undefined],
  ['idempotency', ended('released'), undefined],
  ...['result_too_large', 'abandoned', 'key_lost', 'transaction_unused'].map(
    (reason): [string, object, string] => ['idempotency', ended(reason), 'warn'],
  ),
  ...['uncoupled', 'transaction_used_late', 'answer_unsent'].map(
    (reason): [string, object, string] => ['idempotency', ended(reason), 'error'],
  ),
  ['denylist', { type: 'changed', version: 2, added: 1, removed: 0 }, 'info'],
  ['denylist', { type: 'recovered' }, 'info'],
  ['denylist', { type: 'stale', reason: 'timeout' }, 'error'],
  ['denylist', { type: 'expired', reason: 'network' }, 'error'],
  ['denylist', { type: 'regressed', kept: 3 }, 'error'],
  ...['batch_rejected', 'reply_lost', 'row_failed'].map((type): [string, object, string] => [
    'migration',
    { by: 'migration', type },
    'warn',
  ]),
  ['postgres', { type: 'swept', deleted: 3, durationMs: 1 }, undefined],
  ['postgres', { type: 'sweep_failed', sqlState: '42501' }, 'error'],
])('writes an event of %s, %o, at %s', (name, event, level) => {
  const journal = new Journal()
  log(journal)
  channel(`express-service-auth:${name}`).publish(event)
  expect(journal.entries.map(([written]) => written)).toEqual(level === undefined ? [] : [level])
})

it('tells that a lease could not be renewed, which no other event tells', async () => {
  const journal = new Journal()
  log(journal)
  const store = watchedStore(memoryStore())
  store.fail('renew')
  const receiver = await startOrders({
    express,
    store,
    options: { leaseSeconds: 1 },
    handler: (_req, res) => void setTimeout(() => res.status(201).json({}), 500),
  })
  await call(receiver.port, { key: newKey() })
  expect(journal.entries).toMatchObject([
    ['error', { operation: 'renew', ok: false }, 'The lease of a write could not be renewed.'],
  ])
})

it('writes 10 lines in 10 s unless told otherwise', async () => {
  const journal = new Journal()
  const stop = log(journal)
  const receiver = await openReads()
  for (let count = 0; count < 12; count += 1) await receiver.call()
  stop()
  expect(journal.entries).toHaveLength(11)
  expect(journal.entries[10]?.[2]).toBe('Suppressed 2 more lines within 10 s: credentials_missing.')
})

it('listens to all channels until it is stopped', async () => {
  const journal = new Journal()
  const stop = log(journal)
  expect(areObserved()).toEqual(Array(6).fill(true))
  stop()
  stop()
  expect(areObserved()).toEqual(Array(6).fill(false))
  const receiver = await openReads()
  await receiver.call()
  expect(journal.entries).toEqual([])
})

it('writes to pino', async () => {
  const lines: Record<string, unknown>[] = []
  const destination = {
    write(text: string) {
      recordOutput('a line of pino', text)
      lines.push(JSON.parse(text))
    },
  }
  log(pino({ base: null, timestamp: false }, destination), { burst: 1, everySeconds: 3600 })()
  const stop = log(pino({ base: null, timestamp: false }, destination), { burst: 1 })
  const receiver = await openReads()
  await receiver.call()
  await receiver.call()
  stop()
  expect(lines).toEqual([
    {
      level: 40,
      outcome: 'refused',
      reason: 'credentials_missing',
      status: 401,
      by: 'serviceAuth',
      msg: 'serviceAuth refused a request: credentials_missing.',
    },
    {
      level: 40,
      type: 'left_out',
      reason: 'credentials_missing',
      lines: 1,
      msg: 'Suppressed 1 more line within 10 s: credentials_missing.',
    },
  ])
})

it('writes one string an event to the console: the sentence, then the event as JSON', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  log(console)
  const receiver = await openReads()
  await receiver.call()
  expect(warn.mock.calls).toEqual([
    [
      'serviceAuth refused a request: credentials_missing. {"outcome":"refused","reason":"credentials_missing","status":401,"by":"serviceAuth"}',
    ],
  ])
})

it('writes one line an event to any Console, whatever a token contains', async () => {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  log(new Console(stream), { accepted: true })
  const receiver = await openReads()
  const sub = 'a b\r\nserviceAuth accepted a request.\u001b[2J\u0085\u2028\u202e "%s" \ud800'
  await receiver.call(issuer.token({ sub }))
  await receiver.call(issuer.token({ permissions: ['orders:read'] }))
  const lines = text.trimEnd().split(/[\p{Cc}\u2028\u2029]/u)
  expect(lines).toHaveLength(3)
  expect(text).toMatch(/^[\x20-\x7e\n]+$/)
  const [refused = ''] = lines
  const message = 'serviceAuth refused a request: caller_not_approved. '
  expect(refused.slice(0, message.length)).toBe(message)
  expect(JSON.parse(refused.slice(message.length))).toMatchObject({ caller: sub })
})

const UNDECIDED = 'migrationEndpoint could not decide on a request'

it.each([true, false])(
  'writes the decisions of migrationEndpoint, with accepted: %s',
  async (accepted) => {
    const journal = new Journal()
    log(journal, { accepted })
    const core = await openGatedCore()
    const endpoint = await openEndpoint(core)
    await endpoint.post(bodyAbout('user-1'))
    await endpoint.post(bodyAbout('user-1'), { token: undefined })
    core.isDead = true
    await endpoint.post(bodyAbout('user-2'))
    const all = [
      ['info', endpoint.decisions[0], 'migrationEndpoint accepted a request.'],
      ['warn', endpoint.decisions[1], 'migrationEndpoint refused a request: credentials_missing.'],
      ['error', endpoint.decisions[2], `${UNDECIDED}: core_unavailable.`],
    ]
    expect(journal.entries).toEqual(accepted ? all : all.slice(1))
  },
)

it('writes the progress of a migration', async () => {
  const journal = new Journal()
  log(journal)
  const events: unknown[] = []
  const { open } = scene({}, { onProgress: (event) => events.push(event) })
  const migration = await open()
  expect((await migration.run()).state).toBe('complete')
  const [first] = journal.entries
  expect(first).toEqual(['info', events[0], 'A migration started its preflight.'])
  expect(journal.entries.at(-1)).toEqual(['info', events.at(-1), 'A step of a migration ended.'])
  expect(journal.entries.map(([, event]) => event)).toEqual(events)
})

it.each<[string, () => unknown]>([
  ['throws', throwing(new Error('disk full'))],
  ['rejects', () => Promise.reject(new Error('disk full'))],
])('changes nothing where the logger %s', async (_what, fail) => {
  const unhandled = collectUnhandledErrors()
  const stop = log({ info: fail, warn: fail, error: fail }, { accepted: true, burst: 1 })
  const receiver = await openReads()
  expect((await receiver.call(issuer.token({ permissions: ['orders:read'] }))).status).toBe(200)
  expect((await receiver.call()).status).toBe(401)
  expect((await receiver.call()).status).toBe(401)
  stop()
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled).toEqual([])
})

it.each<[string, unknown, unknown, RegExp]>([
  ['no logger', undefined, {}, /^logDecisions: logger must have the functions info, warn and err/],
  ['a logger without warn', { info() {}, error() {} }, {}, /logger must have the functions/],
  ['an unknown option', console, { bursts: 1 }, /^logDecisions options: bursts is not an option$/],
  ['a burst of none', console, { burst: 0 }, /burst must be an integer from 1 to 1000$/],
  [
    'half a second',
    console,
    { everySeconds: 0.5 },
    /everySeconds must be an integer from 1 to 3600/,
  ],
  ['accepted that is no flag', console, { accepted: 'all' }, /accepted must be true or false/],
])('takes no %s', (_what, logger, options, message) => {
  expect(() => logDecisions(logger as Logger, options as LogOptions)).toThrow(TypeError)
  expect(() => logDecisions(logger as Logger, options as LogOptions)).toThrow(message)
  expect(areObserved()).toEqual(Array(6).fill(false))
})
