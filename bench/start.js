/*
 * Runs the benchmark on Node 24, or on the Node that BENCH_NODE names. Where the machine's own is another one,
 * npx fetches it.
 */
import { spawnSync } from 'node:child_process'

const wanted = process.env.BENCH_NODE ?? '24'
const isHere = `${process.versions.node}.`.startsWith(`${wanted}.`)
const node = isHere ? [process.execPath] : ['npx', '-y', '-p', `node@${wanted}`, 'node']
const file = new URL('run.js', import.meta.url).pathname
const [command, ...args] = [...node, '--import', 'tsx', file, ...process.argv.slice(2)]
const { status, error } = spawnSync(command, args, { stdio: 'inherit' })
if (error) throw error
process.exitCode = status ?? 1
