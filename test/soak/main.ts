import { parseArgs } from 'node:util'
import useTemporaryHome from '../support/run/temporary-home.js'
import { enterNetwork, openNetwork } from './own-network.js'
import { type SoakReport, STORES, type StoreName, soak } from './soak.js'

// npm run soak -- [--hours 1 | --minutes 3] [--store cluster|sentinel|postgres|all] [--writers 96] [--no-replicas]

const { values } = parseArgs({
  options: {
    /** For all stores together, one after the other. */
    hours: { type: 'string' },
    minutes: { type: 'string', default: '3' },
    store: { type: 'string', default: 'all' },
    writers: { type: 'string', default: '96' },
    /** Nothing waits for replicas, so that a failover may lose what was acknowledged. */
    'no-replicas': { type: 'boolean', default: false },
  },
})
const minutes = values.hours === undefined ? Number(values.minutes) : 60 * Number(values.hours)
const writers = Number(values.writers)
const hasReplicas = !values['no-replicas']
const all = Object.keys(STORES) as StoreName[]
const stores = all.filter((name) => [name, 'all'].includes(values.store))
if (stores.length === 0 || !(minutes > 0) || !(writers >= 1)) {
  const numbers = '--minutes and --hours take a number above 0, --writers one from 1'
  console.error(`--store is one of ${all.join(', ')} and all; ${numbers}`)
  process.exit(1)
}
enterNetwork()
await useTemporaryHome()
const network = await openNetwork()
const seconds = (60 * minutes) / stores.length
console.log(`${stores.join(', ')}: ${seconds} s each, ${hasReplicas ? 'with' : 'without'} replicas`)
const reports = new Map<StoreName, SoakReport>()
for (const store of stores) {
  reports.set(store, await soak({ store, seconds, writers, hasReplicas, network }))
}

const printLine = (...cells: readonly (string | number)[]): void =>
  console.log(cells.map((cell) => String(cell).padEnd(22)).join(''))
printLine('', ...stores)
for (const label of new Set([...reports.values()].flatMap(({ figures }) => Object.keys(figures)))) {
  printLine(label, ...[...reports.values()].map(({ figures }) => figures[label] ?? ''))
}
const SHOWN = 20
let violations = 0
for (const [store, report] of reports) {
  violations += report.violations.length
  for (const text of report.explained.slice(0, SHOWN)) console.log(`explained  ${store}: ${text}`)
  for (const text of report.violations.slice(0, SHOWN))
    console.error(`VIOLATION  ${store}: ${text}`)
}
const kept = hasReplicas
  ? 'each write had one effect, and its answers agree with the table'
  : 'each double, and each answer that disagrees with the table, follows from a failover'
console.log(violations === 0 ? kept : `FAILED: ${violations} violations`)
process.exit(violations === 0 ? 0 : 1)
