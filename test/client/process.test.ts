import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { compile } from '../support/process/compile.js'
import { hangs, hangsUp, type Lie, mints, startLyingCore } from './lying-core.js'

const child = await compile(new URL('./process.child.ts', import.meta.url))

it.concurrent.for<[string, Lie, string]>([
  ['obtained', mints(), 'left\n'],
  ['failed', hangsUp, 'no service token: core_unreachable, UND_ERR_SOCKET\nleft\n'],
  ['under way', hangs, 'left\n'],
  ['waiting for its key', hangs, 'left\n'],
])(
  'a source that is left open does not hold the process open: %s',
  async ([state, lie, told], { onTestFinished }) => {
    const core = await startLyingCore(lie, onTestFinished)
    const command = [child, state, core.url]
    const run = promisify(execFile)(process.execPath, command, { timeout: 30_000 })
    expect(await run).toMatchObject({ stdout: told, stderr: '' })
  },
)
