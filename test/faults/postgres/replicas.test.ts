import { expect, it, onTestFinished } from 'vitest'
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres-options.js'
import {
  type PostgresServer,
  type PostgresSettings,
  startPostgres,
} from '../../support/postgres/postgres.js'
import {
  type CoupledReceiver,
  createLedger,
  type Ledger,
  openCoupled,
  writeEffect,
} from '../../support/receiver/coupled-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

const AT_ONCE = 8
const WRITES_BEFORE = 40
/** Of a server that is killed: what waits for it is soon over. */
const SOON_OVER = { acquireMs: 500, resolveMs: 500 }
/** A server that was just promoted may be slow on a busy machine. */
const PATIENT = { acquireMs: 10_000 }
const ASYNCHRONOUS = expect.stringContaining('a standby is asynchronous')

interface Replicated {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  readonly ledger: Ledger
  open(server: PostgresServer, limits?: PostgresStoreOptions): Promise<CoupledReceiver>
}

/** Two servers, of which the one follows the other. */
async function openReplicated(settings: PostgresSettings = {}): Promise<Replicated> {
  const primary = await startPostgres()
  onTestFinished(() => primary.stop())
  const ledger = await createLedger(primary)
  const standby = await startPostgres({ standbyOf: primary })
  onTestFinished(() => standby.stop())
  for (const [name, value] of Object.entries(settings)) {
    await primary.query(`alter system set ${name} = '${value}'`)
  }
  await primary.query('select pg_reload_conf()')
  const wanted = settings['synchronous_standby_names'] === undefined ? 'async' : 'sync'
  await until(`the standby is ${wanted}`, async () => {
    const [row] = await primary.query('select sync_state from pg_stat_replication')
    return row?.['sync_state'] === wanted
  })
  const open: Replicated['open'] = (server, limits = SOON_OVER) =>
    openCoupled({
      url: server.urlFor(ledger.name),
      store: limits,
      handler: (store) => async (request, response) => {
        await writeEffect(store, request)
        response.status(201).json({ order: 1 })
      },
    })
  return { primary, standby, ledger, open }
}

/** Some writes, and more until one is not acknowledged; tells which keys were, and which were sent. */
async function writeUntilItFails({ port }: CoupledReceiver) {
  const [sent, acknowledged]: [string[], string[]] = [[], []]
  const keepWriting = async (): Promise<void> => {
    for (let isUp = true; isUp; ) {
      const key = newKey()
      sent.push(key)
      isUp = (await call(port, { key, body: '{"a":1}' })).status === 201
      if (isUp) acknowledged.push(key)
    }
  }
  const ended = Promise.all(Array.from({ length: AT_ONCE }, keepWriting))
  await until('some are written', async () => acknowledged.length >= WRITES_BEFORE)
  return { sent, acknowledged, ended }
}

/** How many effects each key has at the server that is the primary now, where each has one record. */
async function lookAt({ standby, ledger }: Replicated) {
  const ask = (text: string) => standby.query<{ key: string; n: number }>(text, [], ledger.name)
  const effects = await ask('select key, count(*)::int as n from effect group by key')
  const [records] = await ask('select count(*)::int as n from service_auth.idempotency')
  expect(records?.n).toBe(effects.length)
  return new Map(effects.map(({ key, n }) => [key, n]))
}

/** Sends each key again; after it each has one effect and one record. */
async function retryAll(replicated: Replicated, keys: readonly string[]): Promise<string[]> {
  const receiver = await replicated.open(replicated.standby, PATIENT)
  const replayed: string[] = []
  for (const key of keys) {
    const answer = await call(receiver.port, { key, body: '{"a":1}' })
    expect(answer.status).toBe(201)
    if (answer.headers['idempotent-replayed']) replayed.push(key)
  }
  const effects = await lookAt(replicated)
  expect(effects).toEqual(new Map(keys.map((key) => [key, 1])))
  return replayed
}

it('a failover to a synchronous standby loses no write that was acknowledged', async () => {
  const replicated = await openReplicated({ synchronous_standby_names: '*' })
  const { primary, standby } = replicated
  const receiver = await replicated.open(primary)
  expect(await receiver.store.check()).not.toContainEqual(ASYNCHRONOUS)
  const { sent, acknowledged, ended } = await writeUntilItFails(receiver)
  await primary.kill()
  await ended
  await standby.query('select pg_promote()')

  const effects = await lookAt(replicated)
  expect(acknowledged.filter((key) => !effects.has(key))).toEqual([])
  const replayed = await retryAll(replicated, sent)
  expect(replayed).toEqual(expect.arrayContaining(acknowledged))
})

it('a failover to an asynchronous standby loses writes with their records, and retries run', async () => {
  const replicated = await openReplicated()
  const { primary, standby } = replicated
  const receiver = await replicated.open(primary)
  expect(await receiver.store.check()).toContainEqual(ASYNCHRONOUS)
  const { sent, acknowledged, ended } = await writeUntilItFails(receiver)
  // From here on it gets nothing more.
  await standby.stopImmediate()
  const before = acknowledged.length
  await until('more are written', async () => acknowledged.length >= before + WRITES_BEFORE)
  await primary.kill()
  await ended
  await standby.restart()
  await standby.query('select pg_promote()')

  const effects = await lookAt(replicated)
  const lost = acknowledged.filter((key) => !effects.has(key))
  expect(lost.length).toBeGreaterThan(0)
  const replayed = await retryAll(replicated, sent)
  expect(replayed.filter((key) => lost.includes(key))).toEqual([])
})
