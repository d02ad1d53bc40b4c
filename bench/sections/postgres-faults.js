import { startApp } from '../measure.js'
import { atMost, printTable } from '../table.js'
import { quantile } from '../throughput.js'
import { postOrder } from './postgres-cost.js'

const KILLS = 5
const POLL_MS = 5
const ROWS = [
  { label: 'while the handler waits', where: 'idle', aim: 0.1 },
  { label: 'while a statement runs', where: 'statement', aim: 1 },
]

/** How soon another process runs a request whose first process was killed. */
export async function postgresFaults(bench) {
  const settings = { library: 'pg', postgresUrl: bench.postgres.url }
  const other = await startApp(bench, { app: 'coupled', settings })
  const rows = []
  try {
    await postOrder(bench, other.port)
    for (const { label, where, aim } of ROWS) {
      const seconds = []
      for (let kill = 0; kill < KILLS; kill += 1) {
        seconds.push(await secondsToRetry(bench, { settings, where, port: other.port }))
      }
      const median = quantile(seconds, 0.5).toFixed(2)
      rows.push([label, median, Math.max(...seconds).toFixed(2), atMost(aim, Number(median))])
    }
  } finally {
    await other.node.stop()
  }
  printTable(['SIGKILL, until a retry runs', 'seconds', 'longest', 'aim'], rows)
}

async function secondsToRetry(bench, { settings, where, port }) {
  const { node, port: killed } = await startApp(bench, { app: 'coupled', settings })
  const headers = { 'Idempotency-Key': crypto.randomUUID() }
  const hanging = node.answer()
  const cut = postOrder(bench, killed, { ...headers, 'X-Hang': where }).catch(() => undefined)
  await hanging
  // Until the statement has reached the server.
  await new Promise((resolve) => setTimeout(resolve, 10 * POLL_MS))
  process.kill(node.pid, 'SIGKILL')
  const killedAt = performance.now()
  await cut
  while ((await postOrder(bench, port, headers)) !== 201) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  return (performance.now() - killedAt) / 1000
}
