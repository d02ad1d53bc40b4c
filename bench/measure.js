import { startServer } from './processes.js'

/** Two processes of one program differ by up to a tenth: each heat starts new ones. */
const HEATS = 3
/** Many and short: on a busy machine some of them are left alone. */
const TURNS_PER_HEAT = Number(process.env.BENCH_TURNS ?? 20)
const TURN_MS = Number(process.env.BENCH_MS ?? 100)
const WARM_UP_MS = 1000

/**
 * Lets all contenders take turns, so that whatever else the machine does meets them all. Resolves to the heats
 * of each contender; a heat is a list of turns `{ cost, rate }`: microseconds of processor time for a request, and
 * requests a second. A contender is `{ app, settings, request, before, warmUpMs, tls }`; `before` runs ahead of each
 * of its turns, `tls` is how the load connects. `options` are `{ turns, turnMs, connections, storeCpu }`; what
 * `storeCpu` returns, in microseconds, is charged to the requests as well.
 */
export async function measure(bench, contenders, options = {}) {
  const heats = []
  for (let heat = 0; heat < HEATS; heat += 1) heats.push(await runHeat(bench, contenders, options))
  return contenders.map((_, index) => heats.map((turns) => turns[index]))
}

async function runHeat(bench, contenders, options) {
  const { turns = TURNS_PER_HEAT, turnMs = TURN_MS } = options
  const servers = []
  try {
    for (const contender of contenders) servers.push(await startApp(bench, contender))
    for (const server of servers) {
      await takeTurn(bench, server, { ...options, turnMs: server.contender.warmUpMs ?? WARM_UP_MS })
    }
    const taken = servers.map(() => [])
    for (let turn = 0; turn < turns; turn += 1) {
      // Backwards every other time: no one always follows the same other.
      const order = [...servers.keys()]
      if (turn % 2 === 1) order.reverse()
      for (const index of order) {
        taken[index].push(await takeTurn(bench, servers[index], { ...options, turnMs }))
      }
    }
    return taken
  } finally {
    await Promise.all(servers.map(({ node }) => node.stop()))
  }
}

/** Starts an app in a process of its own. */
export async function startApp({ settings }, contender) {
  const given = JSON.stringify({ ...settings, ...contender.settings })
  const file = new URL('serve.js', import.meta.url).pathname
  const node = startServer([file, contender.app, given])
  const { port } = await node.answer()
  return { node, port, contender }
}

async function takeTurn({ load }, { node, port, contender }, { turnMs, connections, storeCpu }) {
  const { request, before, tls, app } = contender
  const spent = async () => (await node.ask({})).cpuMicroseconds + (storeCpu?.() ?? 0)
  await before?.()
  const start = await spent()
  const turn = { port, request, durationMs: turnMs, connections, tls }
  const { count, elapsedMs } = await load(turn).catch((error) => {
    throw new Error(`${app} answered otherwise`, { cause: error })
  })
  return { cost: ((await spent()) - start) / count, rate: (count * 1000) / elapsedMs }
}

/** Neighbours and collections only ever add to a turn: the cheapest is nearest to the truth. */
export const cheapest = (heats) => Math.min(...heats.flat().map(({ cost }) => cost))

export function median(figures) {
  const sorted = figures.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)]
}
