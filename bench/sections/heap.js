import { startApp } from '../measure.js'
import { printTable } from '../table.js'

const CACHED = 10_000
const RUN_MS = 300
const MOST_MB = 10

/** What the verified tokens of a full cache keep on the heap. */
export async function heap(bench) {
  const heapAfter = async (pool, least, settings) => {
    const { node, port } = await startApp({ app: 'read', settings }, bench, ['--expose-gc'])
    const turns = [{ kind: 'read', pool, status: 200 }]
    for (let sent = 0; sent < least; ) {
      const { total, fault } = await bench.load.ask({ run: { port, turns, durationMs: RUN_MS } })
      if (fault !== undefined) throw new Error(`the heap's server answered otherwise: ${fault}`)
      sent += total
    }
    const { heapUsed } = await node.ask({})
    await node.stop()
    return heapUsed / 1e6
  }
  const without = await heapAfter('fresh', 2 * CACHED, false)
  const used = (await heapAfter('fresh', 2 * CACHED, { max: CACHED })) - without
  printTable(
    'Memory of 10,000 cached tokens',
    ['', 'MB of heap', 'reached'],
    [['tokenCache', used.toFixed(1), `${used <= MOST_MB ? 'yes' : 'NO'}, at most ${MOST_MB}`]],
  )
}
