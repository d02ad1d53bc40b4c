import { startApp } from '../measure.js'
import { LOAD_CORE, startNode } from '../processes.js'
import { atLeast, atMost, printTable } from '../table.js'
import { quantile } from '../throughput.js'
import { fillRecords } from './postgres-cost.js'

const RECORDS = 900_000
const EXPIRED = 100_000
const SWEEPS = 5
const AT_ONCE = 16
const TURN_MS = 3000
/** Until the writes are at their pace. */
const BEFORE_SWEEP_MS = 1000

/** How long it takes to sweep a hundred thousand of a million records, and what writes do meanwhile. */
export async function postgresSweep(bench) {
  const { pool, url } = bench.postgres
  const { node, port } = await startApp(bench, {
    app: 'coupled',
    settings: { library: 'pg', postgresUrl: url },
  })
  const file = new URL('../sweeper.js', import.meta.url).pathname
  const sweeper = startNode(LOAD_CORE, file, [bench.settings.build, url])
  await sweeper.answer()
  const result = Buffer.alloc(100)
  try {
    await pool.query('truncate service_auth.idempotency')
    await fillRecords(pool, { rows: RECORDS, result, expiresIn: '1 day' })
    const sweeps = []
    for (let done = 0; done < SWEEPS; done += 1) {
      await fillRecords(pool, { rows: EXPIRED, result, expiresIn: '-1 hour' })
      await pool.query('vacuum analyze service_auth.idempotency')
      await pool.query('checkpoint')
      sweeps.push(await sweepUnderLoad(bench, { port, sweeper }))
    }
    const seconds = quantile(
      sweeps.map((sweep) => sweep.seconds),
      0.5,
    ).toFixed(2)
    const ratio = quantile(
      sweeps.map((sweep) => sweep.ratio),
      0.5,
    ).toFixed(2)
    printTable(
      ['100,000 of a million records', 'seconds', 'aim', 'writes meanwhile', 'aim'],
      [['sweep', seconds, atMost(0.5, Number(seconds)), ratio, atLeast(0.9, Number(ratio))]],
    )
  } finally {
    await sweeper.stop()
    await node.stop()
  }
}

/** Writes a second while it sweeps, over those before and after it. */
async function sweepUnderLoad({ load }, { port, sweeper }) {
  const requests = [{ kind: 'write', pool: 'few', status: 201 }]
  const turn = { port, requests, durationMs: TURN_MS, connections: AT_ONCE, recordsTimes: true }
  const loading = load.ask({ turn })
  await new Promise((resolve) => setTimeout(resolve, BEFORE_SWEEP_MS))
  const { begunAt, endedAt, deleted } = await sweeper.ask({})
  const { moments, fault } = await loading
  if (fault !== undefined) throw new Error(`a write beside the sweep: ${fault}`)
  if (deleted !== EXPIRED) throw new Error(`${deleted} records were swept`)
  const sweepMs = endedAt - begunAt
  const isMeanwhile = (moment) => moment >= begunAt && moment < endedAt
  const meanwhile = moments.filter(isMeanwhile).length / sweepMs
  const others = moments.filter((moment) => !isMeanwhile(moment)).length / (TURN_MS - sweepMs)
  return { seconds: sweepMs / 1000, ratio: meanwhile / others }
}
