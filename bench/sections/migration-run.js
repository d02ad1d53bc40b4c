import { cheapest, median, ratioOf } from '../figures.js'
import { LOAD_CORE, SERVER_CORE, startNode } from '../processes.js'
import { prepareStandInCore } from '../stand-in-core.js'
import { atLeast, atMost, printTable } from '../table.js'

const HEATS = 3
const TURNS = Number(process.env.BENCH_TURNS ?? 5)
const USERS = 10_000
const MANY_USERS = 100_000
const API_KEY = 'an-api-key-of-the-benchmark'
const MIN_RATIO = 0.9
const MAX_MB_MORE = 24

const fileOf = (name) => new URL(`../${name}`, import.meta.url).pathname

/** What a run costs beside plain calls with the same users, and what its memory grows by with users. */
export async function migrationRun(bench) {
  const { build } = bench.settings
  const standIn = await prepareStandInCore(API_KEY)
  const fastCore = startNode(LOAD_CORE, fileOf('fast-core.js'))
  try {
    const { url } = await fastCore.answer()
    const inFastCore = (question) => ask({ ...question, url, build, apiKey: API_KEY })
    const inStandIn = async (question) => {
      const core = await standIn.start()
      try {
        return await ask({ ...question, url: core.url, build, apiKey: API_KEY })
      } finally {
        await core.stop()
      }
    }
    await compareStaging(inStandIn, { core: 'the stand-in core', aim: MIN_RATIO })
    await compareStaging(inFastCore, { core: 'a core without a database' })
    await compareHeaps(inFastCore)
  } finally {
    await fastCore.stop()
    await standIn.remove()
  }
}

async function ask(question) {
  const node = startNode(SERVER_CORE, fileOf('migrator.js'), [], ['--expose-gc'])
  try {
    const answer = await node.ask(question)
    if (answer.fault !== undefined) throw new Error(answer.fault)
    return answer
  } finally {
    await node.stop()
  }
}

async function compareStaging(stage, { core, aim }) {
  const heats = [[], []]
  for (let heat = 0; heat < HEATS; heat += 1) {
    const costs = [[], []]
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (const [index, isOurs] of [false, true].entries()) {
        const { milliseconds } = await stage({ isOurs, users: USERS })
        costs[index].push(milliseconds)
      }
    }
    for (const index of [0, 1]) heats[index].push(costs[index])
  }
  const [plain, ours] = heats
  const { ratio, least, most } = ratioOf(plain, ours)
  const cells = (costs) => [cheapest(costs).toFixed(0), median(costs).toFixed(0)]
  const spread = `${least.toFixed(2)}-${most.toFixed(2)}`
  printTable(
    [`10,000 users to ${core}`, 'ms', 'median', 'ratio', 'heats', 'aim'],
    [
      ['plain fetch', ...cells(plain), '', '', ''],
      ['a run, after its preflight', ...cells(ours), ratio.toFixed(2), spread, atLeast(aim, ratio)],
    ],
  )
}

async function compareHeaps(stage) {
  const peakOf = async (users) => {
    const { peak } = await stage({ isOurs: true, users, isMeasuringHeap: true })
    return peak / 1e6
  }
  const few = await peakOf(USERS)
  const more = (await peakOf(MANY_USERS)) - few
  printTable(
    ['memory of a run', 'MB of heap', 'aim'],
    [
      ['10,000 users', few.toFixed(1), ''],
      ['more with 100,000', more.toFixed(1), atMost(MAX_MB_MORE, more)],
    ],
  )
}
