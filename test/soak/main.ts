import useTemporaryHome from '../support/run/temporary-home.js'
import { soakPostgres } from './postgres.js'
import { soak } from './soak.js'

// `npm run soak` on Redis, `npm run soak -- postgres` on Postgres.

interface Report {
  readonly figures: Readonly<Record<string, number | string>>
  readonly violations: readonly string[]
}

const MAX_WRITES = 50_000
/** What a minute on Redis has to reach. */
const MIN_WRITES_PER_MINUTE = 50_000

async function onRedis(seconds: number): Promise<Report> {
  console.log(`soaking for ${seconds} s: two receivers, one Redis, all of them killed now and then`)
  const leastWrites = Math.floor((seconds / 60) * MIN_WRITES_PER_MINUTE)
  const { writes, counts, kills, restarts, violations } = await soak({ seconds, leastWrites })
  const figures = { writes, ...counts, 'receivers killed': kills, 'Redis restarts': restarts }
  return { figures, violations }
}

function onPostgres(seconds: number): Promise<Report> {
  console.log(
    `soaking until ${MAX_WRITES} writes, at most ${seconds} s: two receivers, one Postgres, all of them killed now and then`,
  )
  return soakPostgres({ seconds, writes: MAX_WRITES })
}

const SOAKS = {
  redis: { run: onRedis, seconds: 60 },
  postgres: { run: onPostgres, seconds: 300 },
}

const name = process.argv[2] ?? 'redis'
if (name !== 'redis' && name !== 'postgres') {
  console.error(`no soak ${name}: there are ${Object.keys(SOAKS).join(' and ')}`)
  process.exit(1)
}
const { run, seconds: usualSeconds } = SOAKS[name]
const seconds = Number(process.env['SOAK_SECONDS'] ?? usualSeconds)
if (!(seconds >= 5)) {
  console.error('SOAK_SECONDS must be a number from 5')
  process.exit(1)
}
await useTemporaryHome()
const { figures, violations } = await run(seconds)
for (const [label, value] of Object.entries(figures)) console.log(`${label.padEnd(18)}${value}`)
for (const violation of violations.slice(0, 20)) console.error(`VIOLATION  ${violation}`)
console.log(
  violations.length === 0 ? 'no key had two effects, no caller a strange result' : 'FAILED',
)
process.exit(violations.length === 0 ? 0 : 1)
