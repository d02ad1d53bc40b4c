import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished, vi } from 'vitest'
import { unpackProgram } from './apt.js'

/** What this machine has, Redis apart. */
async function statusWithoutRedis(): Promise<string> {
  const packages = (await readFile('/var/lib/dpkg/status', 'utf8')).split('\n\n')
  return packages.filter((each) => !/^Package: redis-/.test(each)).join('\n\n')
}

it('unpacks a Redis that runs, without the rights of root', { timeout: 180_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'unpacked-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'status'), await statusWithoutRedis())
  await writeFile(join(folder, 'apt.conf'), `Dir::State::status "${join(folder, 'status')}";\n`)
  vi.stubEnv('APT_CONFIG', join(folder, 'apt.conf'))
  const program = unpackProgram('redis-server', 'redis-server', join(folder, 'redis'))
  vi.unstubAllEnvs()
  const { stdout } = await promisify(execFile)(program, ['--version'])
  expect(stdout).toMatch(/^Redis server v=\d/)
  // It is there now, and is not fetched again.
  expect(unpackProgram('redis-server', 'redis-server', join(folder, 'redis'))).toBe(program)
})
