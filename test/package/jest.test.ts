import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { blocksOf, sections } from '../docs/markdown.js'
import { ROOT, runIn } from './pack.js'
import { createProject, type Project } from './project.js'

const page = await readFile(join(ROOT, 'docs/testing.md'), 'utf8')
const section = sections(page).find(({ heading }) => heading === 'Jest in a CommonJS project')
const [withFlag = '', install = ''] = blocksOf('sh', section?.text ?? '')
const [config = ''] = blocksOf('json', section?.text ?? '')

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const hasSyncModules = major > 24 || (major === 24 && minor >= 9)

let project: Project

beforeAll(async () => {
  project = await createProject()
  await project.install(inject('packed').tarball, 'express', 'jest@30.5.2')
})

afterAll(() => project?.remove())

const runJest = (command: string): Promise<string> =>
  runIn(project.folder, ['sh', '-c', `${command} --json jest/orders.test.js`])

if (hasSyncModules) {
  it('runs tests of a CommonJS project with the flag of the page', async () => {
    expect(JSON.parse(await runJest(withFlag.trim()))).toMatchObject({ numPassedTests: 2 })
  })
}

it('runs tests of a CommonJS project with the Babel settings of the page', async () => {
  await runIn(project.folder, [
    'sh',
    '-c',
    `${install.trim()} --prefer-offline --no-audit --no-fund`,
  ])
  const manifest = JSON.parse(await readFile(join(project.folder, 'package.json'), 'utf8'))
  const settings = { ...manifest, ...JSON.parse(config) }
  await writeFile(join(project.folder, 'package.json'), JSON.stringify(settings))
  expect(JSON.parse(await runJest('npx jest'))).toMatchObject({ numPassedTests: 2 })
})
