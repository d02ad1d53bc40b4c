import { startApp } from '../measure.js'
import { atMost, printTable } from '../table.js'

const CACHED = 10_000
const TURN_MS = 300
const MOST_MB = 10

/** What the verified tokens of a full cache keep on the heap. */
export async function heap(bench) {
  const without = await heapWith(bench, false)
  const used = (await heapWith(bench, { max: CACHED })) - without
  printTable(
    ['memory of 10,000 cached tokens', 'MB of heap', 'aim'],
    [['tokenCache', used.toFixed(1), atMost(MOST_MB, used)]],
  )
}

async function heapWith(bench, tokenCache) {
  const app = { app: 'read', settings: { tokenCache }, flags: ['--expose-gc'] }
  const { node, port } = await startApp(bench, app)
  const requests = [{ kind: 'read', pool: 'fresh', status: 200 }]
  for (let sent = 0; sent < 2 * CACHED; ) {
    const { counts, fault } = await bench.load.ask({
      turn: { port, requests, durationMs: TURN_MS },
    })
    if (fault !== undefined) throw new Error(`the heap's server answered otherwise: ${fault}`)
    sent += counts[0]
  }
  const { heapUsed } = await node.ask({})
  await node.stop()
  return heapUsed / 1e6
}
