import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { blocksOf, codeBlocks, sections } from '../docs/markdown.js'
import { freePort } from '../support/network/free-port.js'
import { until } from '../support/until.js'
import { ROOT, runIn } from './pack.js'
import { createProject, type Project } from './project.js'

const README = await readFile(join(ROOT, 'README.md'), 'utf8')
const BLOCKS = codeBlocks(README)
const QUICK_START = BLOCKS.find(({ heading }) => heading === 'Quick start')?.code ?? ''

let project: Project

beforeAll(async () => {
  project = await createProject()
  await project.install(inject('packed').tarball, 'express', 'ioredis')
  await project.install('@types/express', '@types/node')
})

afterAll(() => project?.remove())

/** Runs the quick start as a file of the project, and resolves with the statuses of its calls. */
async function statusesOf(file: string): Promise<readonly string[]> {
  await writeFile(join(project.folder, file), QUICK_START)
  // It prints tokens on purpose, where the search for secrets does not look.
  const path = join(project.folder, 'printed.txt')
  const printed = await open(path, 'w')
  const env = { ...process.env, PORT: String(await freePort()) }
  const stdio = ['ignore', printed.fd, 'ignore'] as const
  const app = spawn(process.execPath, [file], { cwd: project.folder, env, stdio: [...stdio] })
  await printed.close()
  const calls = async (): Promise<readonly string[]> =>
    (await readFile(path, 'utf8')).match(/^curl .*$/gm) ?? []
  await until(`${file} prints its calls`, async () => (await calls()).length === 2)
  const heads = []
  for (const call of await calls()) {
    const { stdout } = await promisify(execFile)('sh', ['-c', call])
    heads.push(stdout.split('\r\n')[0] ?? '')
  }
  app.kill()
  await once(app, 'exit')
  return heads
}

it('is installed as the README says, and its quick start runs as pasted', async () => {
  const install = sections(README).find(({ heading }) => heading === 'Install')?.text ?? ''
  const [prepare = ''] = (blocksOf('sh', install)[0] ?? '').split('\n')
  expect(prepare).toBe('npm init -y && npm pkg set type=module')
  await runIn(project.folder, ['npm', 'init', '-y'])
  await runIn(project.folder, ['npm', 'pkg', 'set', 'type=commonjs'])
  const statuses = ['HTTP/1.1 200 OK', 'HTTP/1.1 401 Unauthorized']
  expect(await statusesOf('server.mjs')).toEqual(statuses)
  await runIn(project.folder, ['npm', 'pkg', 'set', 'type=module'])
  expect(await statusesOf('server.js')).toEqual(statuses)
})

it('has programs that compile as TypeScript with the settings of the README', async () => {
  await runIn(project.folder, ['npm', 'pkg', 'set', 'type=module'])
  for (const [index, { code }] of BLOCKS.entries()) {
    await writeFile(join(project.folder, `block-${index}.ts`), code)
    await project.compile(`block-${index}.ts`, 'nodenext')
  }
})
