import { startApp } from '../measure.js'
import { atMost, printTable } from '../table.js'
import { EMPTY, FULL, fillDenylist } from './denylist.js'

const CACHED = 10_000
const TURN_MS = 300
const MAX_MB_OF_TOKENS = 10
const MAX_MB_OF_ENTRIES = 5

/** What the verified tokens of a full cache keep on the heap, and what a full denylist does. */
export async function heap(bench) {
  const withoutCache = await heapWith(bench, 'read', { tokenCache: false })
  const ofTokens = (await heapWith(bench, 'read', { tokenCache: { max: CACHED } })) - withoutCache
  await fillDenylist(bench)
  const empty = await heapWith(bench, 'denylistRead', { ...EMPTY, tokenCache: false })
  const ofEntries = (await heapWith(bench, 'denylistRead', { ...FULL, tokenCache: false })) - empty
  printTable(
    ['memory', 'MB of heap', 'aim'],
    [
      ['tokenCache, 10,000 tokens', ofTokens.toFixed(1), atMost(MAX_MB_OF_TOKENS, ofTokens)],
      ['denylist, 10,000 entries', ofEntries.toFixed(1), atMost(MAX_MB_OF_ENTRIES, ofEntries)],
    ],
  )
}

async function heapWith(bench, app, settings) {
  const { node, port } = await startApp(bench, { app, settings, flags: ['--expose-gc'] })
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
