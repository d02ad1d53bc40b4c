import { startApp } from '../measure.js'
import { printTable } from '../table.js'

const CACHED = 10_000
const RUN_MS = 300
const MOST_MB = 10

/** What the verified tokens of a full cache keep on the heap. */
export async function heap(bench) {
  const heapWith = async (tokenCache) => {
    const app = { app: 'read', settings: { tokenCache } }
    const { node, port } = await startApp(app, bench, ['--expose-gc'])
    const turns = [{ kind: 'read', pool: 'fresh', status: 200 }]
    for (let sent = 0; sent < 2 * CACHED; ) {
      const { total, fault } = await bench.load.ask({ run: { port, turns, durationMs: RUN_MS } })
      if (fault !== undefined) throw new Error(`the heap's server answered otherwise: ${fault}`)
      sent += total
    }
    const { heapUsed } = await node.ask({})
    await node.stop()
    return heapUsed / 1e6
  }
  const without = await heapWith(false)
  const used = (await heapWith({ max: CACHED })) - without
  printTable(
    'Memory of 10,000 cached tokens',
    ['', 'MB of heap', 'reached'],
    [['tokenCache', used.toFixed(1), `${used <= MOST_MB ? 'yes' : 'NO'}, at most ${MOST_MB}`]],
  )
}
