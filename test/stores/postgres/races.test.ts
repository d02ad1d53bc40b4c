import { setTimeout as delay } from 'node:timers/promises'
import { migration } from 'express-service-auth/postgres'
import { expect, it } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import {
  type CoupledOptions,
  createLedger,
  openCoupled,
  writeEffect,
} from '../../support/receiver/coupled-receiver.js'
import { type Answer, type Call, call, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

const postgres = await sharedPostgres()

/** One for thousands of calls. */
const headers = { authorization: `Bearer ${issuer.token()}` }
const post = (port: number, given: Call): Promise<Answer> => call(port, { ...given, headers })

const KEYS = 150
const REQUESTS = 3000
const REQUESTS_AT_ONCE = 32
/** It takes a few seconds where nothing else runs. */
const BUSY_MACHINE_MS = 180_000
/** Of a key's requests, one in this many has another body. */
const OTHER_BODY_EVERY = 7

interface Sent {
  readonly key: string
  readonly body: string
  readonly answer: Answer
}

it(
  `${REQUESTS} equal and unequal requests over ${KEYS} keys, to two receivers`,
  async () => {
    const ledger = await createLedger(postgres)
    const events = hearIdempotency()
    const receivers = await Promise.all(
      [1, 2].map(() =>
        openCoupled({
          url: ledger.url,
          store: { acquireMs: 20_000 },
          handler: (store) => async (request, response) => {
            await writeEffect(store, request)
            await delay(Math.random() * 4)
            response.status(201).json({ made: request.body })
          },
        }),
      ),
    )
    const keys = Array.from({ length: KEYS }, newKey)
    const sent: Sent[] = []
    let started = 0

    async function sendSome(): Promise<void> {
      while (started < REQUESTS) {
        const at = started++
        // All requests of a key come close to each other.
        const key = keys[Math.floor((at * KEYS) / REQUESTS)] as string
        const body = at % OTHER_BODY_EVERY === 3 ? '{"body":"other"}' : '{"body":"usual"}'
        const { port } = receivers[Math.round(Math.random())] ?? { port: 0 }
        if (Math.random() < 0.3) await delay(Math.random() * 3)
        sent.push({ key, body, answer: await post(port, { key, body }) })
      }
    }
    await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, sendSome))

    const rows = await ledger.query<{ key: string; n: string }>(
      'select key, count(*) as n from effect group by key',
    )
    expect(rows.filter(({ n }) => n !== '1')).toEqual([])
    expect(new Set(rows.map(({ key }) => key))).toEqual(new Set(keys))
    expect(await ledger.records()).toBe(KEYS)

    const winners = new Map<string, string>()
    for (const { key, body, answer } of sent) {
      if (answer.status !== 201) continue
      expect(answer.body.toString()).toBe(`{"made":${body}}`)
      expect(winners.get(key) ?? body).toBe(body)
      winners.set(key, body)
    }
    expect(winners.size).toBe(KEYS)
    const problems = { 'of equals': 0, 'of others': 0 }
    for (const { key, body, answer } of sent) {
      if (answer.status === 201) continue
      const isEqual = winners.get(key) === body
      problems[isEqual ? 'of equals' : 'of others'] += 1
      // Before any has won, the others may run; a request can also meet an equal one that then loses.
      const may = isEqual
        ? ['request-in-progress']
        : ['idempotency-key-reused', 'request-in-progress']
      expect(may, `${answer.status} ${answer.problem}`).toContain(answer.problem)
    }
    expect(problems['of equals']).toBeGreaterThan(0)
    expect(problems['of others']).toBeGreaterThan(0)
    // No handler runs for nothing: who has the lock sees the record of whoever had it before.
    const reasons = new Set(events.map(({ reason }) => reason))
    expect(reasons).not.toContain('conflict')
    expect(events.filter(({ reason }) => reason === 'reserved')).toHaveLength(KEYS)
  },
  BUSY_MACHINE_MS,
)

it('200 equal requests while one runs, and 200 at once from cold, in one process', async () => {
  const ledger = await createLedger(postgres)
  const proxy = await startPostgresProxy(postgres)
  let letGo = (): void => {}
  let reach = (): void => {}
  const receiver = await openCoupled({
    url: proxy.urlFor(new URL(ledger.url).pathname.slice(1)),
    pool: { max: 3 },
    store: { acquireMs: 20_000 },
    handler: (store) => async (request, response) => {
      await writeEffect(store, request)
      reach()
      await new Promise<void>((resolve) => {
        letGo = resolve
      })
      response.status(201).json({})
    },
  })
  const flood = (key: string, count: number): Promise<Answer>[] =>
    Array.from({ length: count }, () => post(receiver.port, { key, body: '{}' }))
  const running = (): Promise<void> =>
    new Promise((resolve) => {
      reach = resolve
    })

  const key = newKey()
  const begun = running()
  const first = post(receiver.port, { key, body: '{}' })
  await begun
  proxy.reset()
  const met = await Promise.all(flood(key, 200))
  expect(new Set(met.map(({ problem }) => problem))).toEqual(new Set(['request-in-progress']))
  expect(new Set(met.map(({ headers }) => headers['retry-after']?.[0]))).toEqual(new Set(['1']))
  expect(await post(receiver.port, { key, body: '{"other":1}' })).toMatchObject({
    problem: 'request-in-progress',
    headers: { 'retry-after': ['1'] },
  })
  expect([proxy.roundTrips, proxy.statements, proxy.connections]).toEqual([0, [], 0])
  letGo()
  expect(await first).toMatchObject({ status: 201 })

  const coldKey = newKey()
  const coldBegun = running()
  const cold = flood(coldKey, 200)
  await coldBegun
  // Those that were not asked about at the same moment wait for nothing.
  const refused = await Promise.all(flood(coldKey, 20))
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([409]))
  letGo()
  const statuses = (await Promise.all(cold)).map(({ status }) => status).sort()
  expect(statuses.filter((status) => status === 201).length).toBe(1)
  expect(statuses.filter((status) => status === 409).length).toBe(199)
  expect(await ledger.effects(coldKey)).toBe(1)
  await proxy.stop()
})

const SLEEPING =
  "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"

it.each([
  { isolation: undefined, inVain: 0 },
  // The snapshot of the whole transaction is older than the lock; a plain insert of the record notices.
  { isolation: 'repeatable read', inVain: 1 },
] as const)(
  'a run that another overtakes before its lock, at $isolation: one effect',
  async ({ isolation, inVain }) => {
    const ledger = await createLedger(postgres)
    const slowly =
      "if current_setting('application_name') = 'slow' then perform pg_sleep(3); end if;"
    await ledger.query(migration().replace(/is_locked := pg/, `${slowly} $&`))
    const handler: CoupledOptions['handler'] = (store) => async (request, response) => {
      await writeEffect(store, request)
      response.status(201).json({})
    }
    const pool = { application_name: 'slow' }
    const slow = await openCoupled({ url: ledger.url, pool, store: { isolation }, handler })
    const quick = await openCoupled({ url: ledger.url, handler })
    const given = { key: newKey(), body: '{}' }
    const first = post(slow.port, given)
    await until('it is before its lock', async () => (await ledger.query(SLEEPING)).length > 0)
    expect(await post(quick.port, given)).toMatchObject({ status: 201 })
    expect(await first).toMatchObject({ status: 201, headers: { 'idempotent-replayed': ['true'] } })
    expect([slow.handled, await ledger.effects(given.key)]).toEqual([inVain, 1])
  },
)
