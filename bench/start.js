/*
 * Runs the benchmark on the Node that BENCH_NODE names (24 where it names none). npx fetches that
 * Node where the machine's own is another one.
 */
import { spawnSync } from 'node:child_process'
import { tsImport } from 'tsx/esm/api'

const DEFAULT_NODE = '24'

const { default: useTemporaryHome } = await tsImport(
  '../test/support/run/temporary-home.ts',
  import.meta.url,
)
const removeTemporaryHome = await useTemporaryHome()

const wanted = process.env.BENCH_NODE ?? DEFAULT_NODE
const isHere = `${process.versions.node}.`.startsWith(`${wanted}.`)
const [command, ...before] = isHere
  ? [process.execPath]
  : ['npx', '-y', '-p', `node@${wanted}`, 'node']
const file = new URL('run.js', import.meta.url).pathname
const { status, error } = spawnSync(command, [...before, file, ...process.argv.slice(2)], {
  stdio: 'inherit',
  // npx has an INIT_CWD of its own: paths count from where the benchmark was asked for.
  env: { ...process.env, BENCH_FROM: process.env.INIT_CWD ?? '.' },
})
await removeTemporaryHome()
if (error) throw error
process.exitCode = status ?? 1
