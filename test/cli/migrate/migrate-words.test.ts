import { afterAll, describe, expect, it } from 'vitest'
import { startStandInCore } from '../../support/core/stand-in-core.js'
import { linesOf, projectOf, userNamed } from './migrate-kit.js'

const core = await startStandInCore()
afterAll(() => core.close())

describe('the numbers of a check', () => {
  const warned = (name: string) => ({ ...userNamed(name), colour: 'red' })
  const records = [
    userNamed('sum-0'),
    ...Array.from({ length: 20 }, (_, index) => warned(`sum-warned-${index}`)),
    ...Array.from({ length: 3 }, (_, index) => ({ externalUserId: `sum-invalid-${index}` })),
    { ...userNamed('sum-0'), externalUserId: 'sum-twin' },
  ]

  it('are those of its findings and of its counts, in text and in JSON', async () => {
    const project = await projectOf(core, linesOf(...records), core.apiKey)
    const ran = await project.migrate('check')
    expect(ran.exitCode).toBe(1)
    expect(ran.stdout).toMatch(/^State +1 fault, 4 invalid records$/m)
    expect(ran.stdout).toMatch(/^ {2}invalid +4\n {2}pending +21$/m)
    expect(ran.stdout.match(/^fault .*$/gm)).toHaveLength(1)
    const json = (await project.migrate('check', '--json')).stdout.trimEnd().split('\n').at(-1)
    const { counts, findings } = JSON.parse(json ?? '')
    expect(counts).toMatchObject({ invalid: 4, pending: 21 })
    const sums = new Map<string, number>()
    for (const { code, records: size } of findings) sums.set(code, (sums.get(code) ?? 0) + size)
    expect(Object.fromEntries(sums)).toEqual({
      warning_not_accepted: 20,
      record_invalid: 3,
      login_twice: 1,
    })
    for (const step of ['run', 'status']) {
      const { stdout } = await project.migrate(step)
      expect(stdout).toMatch(/^ {2}invalid +4\n {2}pending +21$/m)
      expect(stdout.match(/^\d+ .*invalid .*$/gm)).toHaveLength(4)
    }
  })
})
