import { memoryStore } from 'express-service-auth'
import {
  createTestIssuer,
  hostileTokens,
  idempotencyStoreCases,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createKitProject, type KitProject, type RunnerName } from './testing-kit-project.js'

let project: KitProject

beforeAll(async () => {
  project = await createKitProject(inject('packed').tarball)
})

afterAll(() => project?.remove())

async function namesOfHostileTokens(): Promise<string[]> {
  const issuer = await createTestIssuer({ http: false })
  const names = hostileTokens(issuer).map(({ name }) => `hostile: ${name}`)
  await issuer.close()
  return names
}

const startingWith = (prefix: string, names: readonly string[]): string[] =>
  names.filter((name) => name.startsWith(prefix))

describe.each<RunnerName>(['vitest', 'node:test', 'jest'])("a user's tests with %s", (runner) => {
  it('turn every hostile token away, and end', async () => {
    const { exitCode, passed, others, output } = await project.test(runner, 'orders')
    expect(others, output).toEqual([])
    expect(exitCode, output).toBe(0)
    const names = await namesOfHostileTokens()
    expect(startingWith('hostile: ', passed)).toEqual(names)
    expect(passed.length).toBeGreaterThan(names.length + 6)
  })

  it('find nothing wrong with a store that keeps the rules', async () => {
    const { exitCode, passed, others, output } = await project.test(runner, 'store')
    expect(others, output).toEqual([])
    expect(exitCode, output).toBe(0)
    const cases = [...singleUseStoreCases(memoryStore), ...idempotencyStoreCases(memoryStore)]
    expect(passed).toHaveLength(cases.length)
  })

  it('fail over a store that does not', async () => {
    const env = { STORE: 'careless' }
    const { exitCode, passed, others, output } = await project.test(runner, 'store', env)
    expect(exitCode, output).toBe(1)
    expect(startingWith('single use: of 200 uses at once', others)).toHaveLength(1)
    expect(startingWith('idempotency: another request under', others)).toHaveLength(1)
    expect(passed).not.toEqual([])
  })
})

describe('a script without a runner', () => {
  it('gets what it waits for, and ends by itself', async () => {
    const { exitCode, output } = await project.run('build/script.js')
    expect(output.trim()).toBe('ready rejected ready rejected')
    expect(exitCode).toBe(0)
  })
})
