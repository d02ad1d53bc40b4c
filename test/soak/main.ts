import { soak } from './soak.js'

const seconds = Number(process.env['SOAK_SECONDS'] ?? 60)
if (!(seconds >= 5)) {
  console.error('SOAK_SECONDS must be a number from 5')
  process.exit(1)
}
/** What a minute has to reach. */
const LEAST_WRITES_PER_MINUTE = 50_000

console.log(`soaking for ${seconds} s: two receivers, one Redis, all of them killed now and then`)
const leastWrites = Math.floor((seconds / 60) * LEAST_WRITES_PER_MINUTE)
const { writes, counts, kills, restarts, violations } = await soak({ seconds, leastWrites })
const rows = { writes, ...counts, 'receivers killed': kills, 'Redis restarts': restarts }
for (const [name, value] of Object.entries(rows)) console.log(`${name.padEnd(18)}${value}`)
for (const violation of violations.slice(0, 20)) console.error(`VIOLATION  ${violation}`)
console.log(
  violations.length === 0 ? 'no key had two effects, no caller a strange result' : 'FAILED',
)
process.exit(violations.length === 0 ? 0 : 1)
