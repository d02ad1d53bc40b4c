import { median, startApp } from '../measure.js'
import { startServer } from '../processes.js'

const HEATS = 3
const GOAL = 0.85

/** What `serviceFetch` costs its process, beside `fetch` with the same header. */
export async function client(bench) {
  const calls = [
    { label: 'GET', kind: 'read', app: 'ours/read', path: '/orders/17' },
    { label: 'POST', kind: 'write', app: 'ours/plainWrite', path: '/orders' },
  ]
  for (const call of calls) {
    const heats = []
    for (let heat = 0; heat < HEATS; heat += 1) heats.push(await runHeat(bench, call))
    const least = (who) => Math.min(...heats.flatMap((heat) => heat[who]))
    bench.table.add({
      figure: `serviceFetch, a ${call.label}, of fetch`,
      ours: least('ours'),
      other: least('plain'),
      ratio: least('plain') / least('ours'),
      heats: heats.map(({ plain, ours }) => median(plain) / median(ours)),
      goal: GOAL,
    })
  }
}

async function runHeat(bench, { kind, app, path }) {
  const [token] = await bench.issuer.mint(1)
  const caller = startServer([new URL('../caller.js', import.meta.url).pathname])
  const { node, port } = await startApp(bench, { app })
  try {
    const url = `http://127.0.0.1:${port}${path}`
    return await caller.ask({ build: bench.settings.build, url, token, kind })
  } finally {
    await Promise.all([caller.stop(), node.stop()])
  }
}
