import type { TestIssuer } from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres/postgres-proxy.js'
import { type Answer, call, newKey } from '../../support/receiver/order-calls.js'
import { knowToken } from '../../support/secret-search/index.js'
import { until } from '../../support/until.js'
import { type Cell, cellsOf, VERSIONS } from './matrix.js'
import { nameOf, openStage, type Stage, urlOf } from './stage.js'
import { launchVictim, type Stop, type Victim, type VictimSetting } from './victims.js'

/**
 * Until a retry has its answer. Where no statement ran, Postgres sees at once that its client is gone; else
 * it looks every 0.5 s. The rest is for a busy machine.
 */
const IDLE_MS = 6000
const IN_STATEMENT_MS = 8000

const LONG_MS = 30_000
const SHORT_MS = 3000
const PAUSE_MS = 10

const STOPS: readonly Stop[] = [
  'before begin',
  'before the write',
  'after the write',
  'before the record',
  'in a statement',
  'after COMMIT',
]

/** How many receivers die at once: pgbouncer has 20 connections for all of them. */
const AT_ONCE = 4

const groupsOf = (cells: readonly Cell[]) =>
  Array.from({ length: Math.ceil(cells.length / AT_ONCE) }, (_none, index) => {
    const group = cells.slice(index * AT_ONCE, (index + 1) * AT_ONCE)
    return { title: group.map(({ title }) => title).join('; '), cells: group }
  })

const settingOf = ({ adapter, major }: Cell, url: string): VictimSetting => ({
  adapter: adapter.name,
  major,
  url,
})

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
    const setting = settingOf(cell, stage.postgres.url)
    survivor = await launchVictim([setting], { issuer: issuer.url, transactionMs: LONG_MS })
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
    cells: readonly Cell[],
    transactionMs: number,
    use: (lives: { victim: Victim; wires: readonly PostgresProxy[] }) => Promise<void>,
  ): Promise<void> {
    const wires = await Promise.all(
      cells.map(async ({ route }) => startPostgresProxy(await stage.addressOf(route))),
    )
    const receivers = cells.map((cell, index) =>
      settingOf(cell, urlOf(cell, wires[index] as PostgresProxy)),
    )
    const victim = await launchVictim(receivers, { issuer: issuer.url, transactionMs })
    try {
      // They are connected.
      await Promise.all(victim.ports.map((port) => send(port, newKey())))
      await use({ victim, wires })
    } finally {
      await victim.kill()
      await Promise.all(wires.map((wire) => wire.stop()))
    }
  }

  it.each(groupsOf(cellsOf(['directly'])))(
    '$title: runs again where it has not committed, else its answer is there',
    async ({ cells }) => {
      await onVictim(cells, LONG_MS, async ({ victim }) => {
        const casualties = victim.ports.flatMap((port, index) =>
          STOPS.map((stop) => ({ port, index, stop, key: newKey() })),
        )
        const cut = casualties.map(({ port, stop, key }) => send(port, key, stop))
        await Promise.all(
          casualties.map(({ stop, index }) => victim.reached(`${stop} of ${index}`)),
        )
        for (const { stop, key } of casualties) {
          if (stop !== 'in a statement') continue
          expect((await send(survivor.port, key)).problem).toBe('request-in-progress')
        }
        await victim.kill()
        const retries = casualties.map(async ({ stop, key }) => {
          const withinMs = stop === 'in a statement' ? IN_STATEMENT_MS : IDLE_MS
          const answer = await expectSuccess(survivor.port, key, withinMs)
          expect(isReplayed(answer), stop).toBe(stop === 'after COMMIT')
        })
        await Promise.all(retries)
        for (const { isBroken } of await Promise.all(cut)) expect(isBroken).toBe(true)
      })
    },
  )

  describe.each(cellsOf(['directly'], { onlyPg: true }))('$title', (cell) => {
    it('between the record and COMMIT: a retry runs', async () => {
      await onVictim([cell], LONG_MS, async ({ victim, wires: [wire] }) => {
        const key = newKey()
        wire?.cutAt({ at: /^commit( and chain)?$/i, moment: 'silent before' })
        const cut = send(victim.port, key)
        await until('its COMMIT', async () => wire?.cuts.length === 1)
        await victim.kill()
        wire?.cut()
        expect((await cut).isBroken).toBe(true)
        expect(isReplayed(await expectSuccess(survivor.port, key, IDLE_MS))).toBe(false)
      })
    })

    it('frozen: 409 until its time is over; thawed, it can write no more', async () => {
      await onVictim([cell], SHORT_MS, async ({ victim }) => {
        const key = newKey()
        const late = send(victim.port, key, 'after the write')
        await victim.reached('after the write of 0')
        victim.signal('SIGSTOP')
        expect((await send(survivor.port, key)).problem).toBe('request-in-progress')
        expect(isReplayed(await expectSuccess(survivor.port, key, LONG_MS))).toBe(false)
        victim.signal('SIGCONT')
        victim.goOn()
        const { status, isBroken } = await late
        expect(isBroken || status >= 500).toBe(true)
        expect(await stage.effects(key)).toHaveLength(1)
      })
    })
  })
})
