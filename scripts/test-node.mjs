// Runs the tests on another Node than the machine's: npm run test:node -- 24 [what vitest takes].
// That Node comes from the registry, as the package "node".
import { spawnSync } from 'node:child_process'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const VITEST = `${ROOT}node_modules/vitest/vitest.mjs`
const VERSION = /^\d+(\.\d+){0,2}$/
const OLDEST_MAJOR = 20

const [wanted = '', ...rest] = process.argv.slice(2)

if (!VERSION.test(wanted) || Number.parseInt(wanted, 10) < OLDEST_MAJOR) {
  fail(
    `"${wanted}" is no version of Node from ${OLDEST_MAJOR} on.\n` +
      'Usage: npm run test:node -- <version> [test paths]\n' +
      'such as: npm run test:node -- 24 test/stores',
  )
}
const { version, path } = fetchNode()
console.log(`Node ${version}`)
// Children that are started by name (`#!/usr/bin/env node`, npm) run on it too.
const PATH = `${dirname(path)}${delimiter}${process.env.PATH}`
const tests = spawnSync(path, [VITEST, 'run', ...rest], {
  cwd: ROOT,
  env: { ...process.env, PATH },
  stdio: 'inherit',
})
process.exit(tests.status ?? 1)

/** The wanted Node, fetched unless npm still has it. */
function fetchNode() {
  const print = 'JSON.stringify({ version: process.version, path: process.execPath })'
  const args = ['--yes', '--package', `node@${wanted}`, '--', 'node', '--print', print]
  const npx = spawnSync('npx', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  if (npx.status !== 0) fail(`npm found no Node ${wanted}:\n${npx.error ?? npx.stderr}`)
  const found = JSON.parse(npx.stdout)
  // Where npm is told to run no install scripts, the package holds no Node, and ours would answer.
  if (!`${found.version}.`.startsWith(`v${wanted}.`)) {
    fail(
      `npm was asked for Node ${wanted} and ran ${found.version}. Are install scripts switched off?`,
    )
  }
  return found
}

/** @returns {never} */
function fail(message) {
  console.error(message)
  process.exit(2)
}
