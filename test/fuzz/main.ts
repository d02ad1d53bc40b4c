import { fuzz } from './fuzz.js'

/** Memory that a run may end with beyond its beginning: caches that fill up to their bounds. */
const MAX_GROWN_BYTES = 8 * 1024 * 1024

const seconds = Number(process.env['FUZZ_SECONDS'] ?? 60)
const seed = Number(process.env['FUZZ_SEED'] ?? Date.now() % 2 ** 32)
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error('FUZZ_SECONDS must be a number above 0, FUZZ_SEED an integer')
  process.exit(1)
}

console.log(`fuzzing for ${seconds} s; FUZZ_SEED=${seed} repeats it`)
const { executions, statuses, grownBytes, violations } = await fuzz({ seed, seconds })
console.log(`executions  ${executions}`)
for (const [status, count] of Object.entries(statuses)) console.log(`${status}         ${count}`)
console.log(`heap        ${(grownBytes / 2 ** 20).toFixed(1)} MiB more than after the first tenth`)
for (const violation of violations) console.error(`VIOLATION  ${violation}`)
const hasGrown = globalThis.gc !== undefined && grownBytes > MAX_GROWN_BYTES
if (hasGrown) console.error('VIOLATION  memory grows')
console.log(violations.length === 0 && !hasGrown ? 'nothing but the contract happened' : 'FAILED')
process.exitCode = violations.length === 0 && !hasGrown ? 0 : 1
