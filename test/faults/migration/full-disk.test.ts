import { expect, it, onTestFinished } from 'vitest'
import { accountsByExternalId, startStandInCore } from '../../support/core/stand-in-core.js'
import { runStep, toTheEnd, unharmed, writeProject } from './kit.js'

const USERS = 60

it('a disk that is full ends a run in one line, and with room the next one goes on', async () => {
  const core = await startStandInCore({ job: { intervalMs: 50 } })
  onTestFinished(() => core.close())
  const project = await writeProject('full', USERS)
  const place = { project, coreUrl: core.url, apiKey: core.apiKey }
  for (const maxBlocks of [1, 2, 4, 8]) {
    const args = ['--batch-users', '5']
    const { exitCode, stderr } = await runStep(place, 'run', { maxBlocks, args })
    expect(exitCode).toBe(2)
    expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
      /^service-auth: .* cannot be written \(EFBIG\)/,
    )
  }
  const all = await toTheEnd(place, unharmed)
  expect(all.at(-1)).toMatchObject({ exitCode: 0 })
  expect((await accountsByExternalId(core)).size).toBe(USERS)
})
