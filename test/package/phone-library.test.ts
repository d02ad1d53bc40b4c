import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { ROOT } from './pack.js'
import { createProject, type Project } from './project.js'

const INSTALL = 'npm install google-libphonenumber@3.2.34'
const MISSING = `service-auth: google-libphonenumber is not installed: run ${INSTALL}\n`
const WRONG = `the installed google-libphonenumber has other numbering plans than the core: run ${INSTALL}`

/** A server in one file, which answers with the stored form of two spellings of a number. */
const SERVER = `
import express from 'express'
import { coreClient, migrationEndpoint, validateUser } from 'express-service-auth/migration'
const loginMethods = ['+41044 668 18 01', 'tel:+41446681801'].map((phoneNumber) => ({ recipeId: 'passwordless', phoneNumber }))
const unlimited = { consume: async () => {} }
const endpoint = migrationEndpoint({
  core: coreClient({ baseUrl: 'http://127.0.0.1:3567', apiKey: 'a-key' }),
  issuers: { legacy: { tokens: ['0123456789abcdef0123456789abcdef'], withoutOrganization: ['public'],
    connections: [{ provider: 'auth0', connection: 'Users', as: { recipeId: 'passwordless' } }] } },
  loadUser: async () => undefined,
  limits: { credential: unlimited, user: unlimited },
})
const app = express().use('/migrate-user', endpoint).get('/', (_request, response) => {
  response.json(validateUser({ externalUserId: 'ada', loginMethods }).warnings.map(({ code }) => code))
})
const server = app.listen(0, '127.0.0.1', async () => {
  console.log(await (await fetch('http://127.0.0.1:' + server.address().port)).text())
  server.close()
  server.closeAllConnections()
})
`

let project: Project

beforeAll(async () => {
  project = await createProject()
  await project.install(inject('packed').tarball, 'express', '@types/express', '@types/node')
})

afterAll(() => project?.remove())

function runCommand(...words: string[]) {
  const command = join(project.folder, 'node_modules/.bin/service-auth')
  const options = { cwd: project.folder, encoding: 'utf8' } as const
  const { status, stdout, stderr } = spawnSync(command, words, options)
  return { status, stdout, stderr }
}

async function runModule(code: string): Promise<string> {
  await writeFile(join(project.folder, 'phone.mjs'), code)
  return project.run('phone.mjs')
}

describe('without google-libphonenumber', () => {
  it('is not installed with the package', () => {
    expect(project.has('google-libphonenumber')).toBe(false)
  })

  it('names the command that installs it, before anything else', () => {
    for (const words of [[], ['status'], ['run', '--core', 'nowhere'], ['unknown']]) {
      expect(runCommand('migrate', ...words)).toEqual({ status: 2, stdout: '', stderr: MISSING })
    }
  })

  it('helps with every command, and runs the others', () => {
    expect(runCommand('migrate', '--help')).toMatchObject({ status: 0, stderr: '' })
    for (const name of ['doctor', 'deny', 'allow', 'denylist', 'check-store', 'settle']) {
      expect(runCommand(name).stderr, name).not.toContain('google-libphonenumber')
      expect(runCommand(name, '--help').status, name).toBe(0)
    }
  })

  it('loads every entry point but /migration', async () => {
    await project.install('@opentelemetry/api')
    const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    const names = Object.keys(exports).filter((name) => !/\.(json|sql)$/.test(name))
    expect(names).toContain('./migration')
    const failed = await runModule(`
      for (const name of ${JSON.stringify(names)}) {
        await import('express-service-auth' + name.slice(1)).catch(({ code, message }) => console.log(name, code, message))
      }`)
    expect(failed).toMatch(/^.\/migration ERR_MODULE_NOT_FOUND .*'google-libphonenumber'.*\n$/)
  })

  it('compiles a program against /migration', async () => {
    const program = `import { validateUser } from 'express-service-auth/migration'
export const isValid: boolean = validateUser({}).ok`
    await writeFile(join(project.folder, 'declared.mts'), program)
    await project.compile('declared.mts', 'nodenext')
  })
})

describe.each([
  ['an earlier version', '3.2.33'],
  ['a later version', '3.2.44'],
])('with %s', (_which, version) => {
  beforeAll(() => project.install(`google-libphonenumber@${version}`))

  it('refuses it before anything is read', async () => {
    const expected = { status: 2, stdout: '', stderr: `service-auth: ${WRONG}\n` }
    expect(runCommand('migrate', 'check')).toEqual(expected)
    const told = await runModule(`
      import { importOne, migrationEndpoint, openMigration, validateUser } from 'express-service-auth/migration'
      for (const call of [importOne, migrationEndpoint, openMigration, validateUser]) {
        try { await call() } catch ({ message }) { console.log(message) }
      }`)
    expect(told).toBe(`${WRONG}\n`.repeat(4))
  })
})

describe('with version 3.2.34', () => {
  beforeAll(() => project.install('google-libphonenumber'))

  it.each([
    ['cjs', ''],
    [
      'mjs',
      "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)",
    ],
  ])(
    'is bundled into a server (%s) that knows two spellings of a number',
    async (ending, banner) => {
      await writeFile(join(project.folder, 'server.mjs'), SERVER)
      const outfile = join(project.folder, 'bundled', `server.${ending}`)
      await build({
        entryPoints: [join(project.folder, 'server.mjs')],
        outfile,
        bundle: true,
        platform: 'node',
        format: ending === 'cjs' ? 'cjs' : 'esm',
        banner: { js: banner },
        logLevel: 'silent',
      })
      expect(JSON.parse(await project.run(outfile))).toContain('login_twice')
    },
  )
})
