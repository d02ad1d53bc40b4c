import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { compileCommand } from '../../cli/kit.js'
import { accountsByExternalId, startStandInCore } from '../../support/core/stand-in-core.js'
import { OPTIONS, toTheEnd, unharmed, writeProject } from './kit.js'

const USERS = 60
const BLOCKS = [1, 2, 4, 8]

it('a disk that is full ends a run in one line, and with room the next one goes on', async () => {
  const core = await startStandInCore({ job: { intervalMs: 50 } })
  onTestFinished(() => core.close())
  const project = await writeProject('full', USERS)
  onTestFinished(() => project.remove())
  const place = { project, coreUrl: core.url, apiKey: core.apiKey }
  const program = await compileCommand()

  /** No file may grow beyond so many blocks: to the process that is a full disk. */
  const runWithin = async (blocks: number): Promise<{ exitCode: number; stderr: string }> => {
    const argv = ['migrate', 'run', '--core', core.url, '--api-key-stdin', '--batch-users', '5']
    const files = ['--source', 'users.ndjson', '--journal', 'journal']
    const limited = ['-c', `ulimit -f ${blocks}; exec "$@"`, 'sh', process.execPath, program]
    const child = spawn('sh', [...limited, ...argv, ...files, ...OPTIONS], { cwd: project.folder })
    let stderr = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.stdin.end(core.apiKey)
    const [exitCode] = await once(child, 'close')
    return { exitCode, stderr }
  }
  for (const blocks of BLOCKS) {
    const { exitCode, stderr } = await runWithin(blocks)
    expect(exitCode).toBe(2)
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
      /^service-auth: .* cannot be written \(EFBIG\)/,
    )
  }
  const all = await toTheEnd(place, unharmed)
  expect(all.at(-1)).toMatchObject({ exitCode: 0 })
  expect((await accountsByExternalId(core)).size).toBe(USERS)
})
