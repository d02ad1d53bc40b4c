import type { TestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, call, newKey } from '../../support/order-calls.js'
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres-proxy.js'
import { knowToken } from '../../support/secret-search/index.js'
import { createTestIssuer } from '../../support/test-issuer.js'
import { until } from '../../support/until.js'
import { type Cell, cellsOf, VERSIONS } from './matrix.js'
import { nameOf, openStage, type Stage, urlOf } from './stage.js'
import { launchVictim, type Stop, type Victim } from './victims.js'

/** Quiet machines take 5 to 40 ms, and 0.2 s while a statement runs; then the limits would be 0.1 s and 1 s. */
const IDLE_MS = 1500
const IN_STATEMENT_MS = 4000

const LONG_MS = 30_000
const SHORT_MS = 800
const PAUSE_MS = 10

const NOTHING: readonly Stop[] = [
  'before begin',
  'before the write',
  'after the write',
  'before the record',
]

let issuer: TestIssuer
beforeAll(async () => {
  issuer = await createTestIssuer()
})
afterAll(() => issuer.close())

describe.each(VERSIONS)('a receiver that dies, Postgres %i', (version) => {
  let stage: Stage
  /** Whom all retry at: the records of all adapters are the same. */
  let survivor: Victim
  beforeAll(async () => {
    stage = await openStage(version)
    const [cell] = cellsOf(['directly'], { onlyPg: true }) as [Cell]
    const given = { issuer: issuer.url, transactionMs: LONG_MS, url: stage.postgres.url }
    survivor = await launchVictim(cell, given)
  })
  afterAll(async () => {
    await survivor.kill()
    await stage.close()
  })

  function send(port: number, key: string, stop?: Stop): Promise<Answer> {
    const token = issuer.token()
    knowToken(token)
    const authorization = `Bearer ${token}`
    const effectOf = nameOf(key)
    return call(port, {
      key,
      headers: { authorization, 'x-effect-of': effectOf, ...(stop && { 'x-stop-at': stop }) },
    })
  }

  /** Retries until there is a success, and nothing but that the request still runs before it. */
  async function expectSuccess(port: number, key: string, withinMs: number): Promise<Answer> {
    const startedAt = performance.now()
    let answer = await send(port, key)
    while (answer.problem === 'request-in-progress') {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      answer = await send(port, key)
    }
    expect(answer.status).toBe(201)
    expect(performance.now() - startedAt).toBeLessThan(withinMs)
    const { effect } = JSON.parse(answer.body.toString()) as { effect: string }
    expect(await stage.effects(key)).toEqual([effect])
    const replay = await send(port, key)
    expect(replay.body).toEqual(answer.body)
    expect(replay.headers['idempotent-replayed']).toEqual(['true'])
    return answer
  }

  const isReplayed = ({ headers }: Answer): boolean =>
    headers['idempotent-replayed']?.[0] === 'true'

  async function onVictim(
    cell: Cell,
    transactionMs: number,
    use: (lives: { victim: Victim; wire: PostgresProxy }) => Promise<void>,
  ): Promise<void> {
    const wire = await startPostgresProxy(await stage.addressOf(cell.route))
    const url = urlOf(cell, wire)
    const victim = await launchVictim(cell, { issuer: issuer.url, transactionMs, url })
    try {
      // It is connected.
      await send(victim.port, newKey())
      await use({ victim, wire })
    } finally {
      await victim.kill()
      await wire.stop()
    }
  }

  describe.each(cellsOf(['directly']))('$title', (cell) => {
    test('runs again where it has not committed, else its answer is there', async () => {
      await onVictim(cell, LONG_MS, async ({ victim }) => {
        const stops: readonly Stop[] = [...NOTHING, 'after COMMIT']
        const casualties = stops.map((stop) => ({ stop, key: newKey() }))
        const cut = casualties.map(({ stop, key }) => send(victim.port, key, stop))
        await Promise.all(stops.map((stop) => victim.reached(stop)))
        await victim.kill()
        for (const { isBroken } of await Promise.all(cut)) expect(isBroken).toBe(true)
        for (const { stop, key } of casualties) {
          const answer = await expectSuccess(survivor.port, key, IDLE_MS)
          expect(isReplayed(answer), stop).toBe(stop === 'after COMMIT')
        }
      })
    })
  })

  describe.each(cellsOf(['directly'], { onlyPg: true }))('$title', (cell) => {
    test('between the record and COMMIT: a retry runs', async () => {
      await onVictim(cell, LONG_MS, async ({ victim, wire }) => {
        const key = newKey()
        wire.cutAt({ at: /^commit$/i, moment: 'silent before' })
        const cut = send(victim.port, key)
        await until('its COMMIT', async () => wire.cuts.length === 1)
        await victim.kill()
        wire.cut()
        expect((await cut).isBroken).toBe(true)
        expect(isReplayed(await expectSuccess(survivor.port, key, IDLE_MS))).toBe(false)
      })
    })

    test('while a statement runs: 409 until the server looks, then a retry runs', async () => {
      await onVictim(cell, LONG_MS, async ({ victim }) => {
        const key = newKey()
        const cut = send(victim.port, key, 'in a statement')
        await victim.reached('in a statement')
        expect((await send(survivor.port, key)).problem).toBe('request-in-progress')
        await victim.kill()
        expect((await cut).isBroken).toBe(true)
        expect(isReplayed(await expectSuccess(survivor.port, key, IN_STATEMENT_MS))).toBe(false)
      })
    })

    test('frozen: 409 until its time is over; thawed, it can write no more', async () => {
      await onVictim(cell, SHORT_MS, async ({ victim }) => {
        const key = newKey()
        const late = send(victim.port, key, 'after the write')
        await victim.reached('after the write')
        victim.freeze()
        expect((await send(survivor.port, key)).problem).toBe('request-in-progress')
        expect(isReplayed(await expectSuccess(survivor.port, key, LONG_MS))).toBe(false)
        victim.thaw()
        victim.goOn()
        const { status, isBroken } = await late
        expect(isBroken || status >= 500).toBe(true)
        expect(await stage.effects(key)).toHaveLength(1)
      })
    })
  })
})
