import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { compile } from '../../support/process/compile.js'

it('twelve thousand random kids leave no trace in memory', async () => {
  const child = await compile(new URL('./flood.child.ts', import.meta.url))
  const options = ['--expose-gc', child]
  const { stdout } = await promisify(execFile)(process.execPath, options, { timeout: 150_000 })
  const { grownBytes, statuses, fetches } = JSON.parse(stdout)
  expect(statuses.sort()).toEqual([401, 503])
  // Two in any ten of 120 seconds, and the first.
  expect(fetches).toBeLessThanOrEqual(27)
  expect(grownBytes).toBeLessThan(768 * 1024)
}, 180_000)
