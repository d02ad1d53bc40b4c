import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { compile } from '../../support/process/compile.js'

/**
 * Before a full collection. Before Node 24, V8 keeps every response of Express until then, because Express
 * changes its prototype: 43,000 bytes on Node 20.
 */
const MAX_BYTES_A_REQUEST = Number.parseInt(process.versions.node, 10) < 24 ? 48_000 : 5000

it('an answered run needs no full collection of the heap', async () => {
  const child = await compile(new URL('./young-garbage.child.ts', import.meta.url))
  const options = ['--expose-gc', '--initial-old-space-size=1000', child]
  const { stdout } = await promisify(execFile)(process.execPath, options, { timeout: 60_000 })
  expect(JSON.parse(stdout).bytesARequest).toBeLessThan(MAX_BYTES_A_REQUEST)
}, 70_000)
