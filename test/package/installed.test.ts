import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { createProject, type Project } from './project.js'

const PROBLEM = { type: 'application/problem+json' }

const EXPECTED = {
  noToken: {
    ...PROBLEM,
    status: 401,
    challenge: 'Bearer realm="service"',
    body: { type: 'about:blank', title: 'Unauthorized', status: 401 },
  },
  wrongAudience: {
    ...PROBLEM,
    status: 401,
    challenge: 'Bearer realm="service", error="invalid_token"',
    body: { type: 'about:blank', title: 'Unauthorized', status: 401 },
  },
  noPermission: {
    ...PROBLEM,
    status: 403,
    challenge: 'Bearer realm="service", error="insufficient_scope"',
    body: { type: 'about:blank', title: 'Forbidden', status: 403 },
  },
  accepted: {
    type: 'application/json; charset=utf-8',
    status: 200,
    challenge: null,
    body: {
      id: '7',
      name: 'billing',
      permissions: ['orders:read'],
      tokenId: 'token-1',
      keyId: 'd-1700000000000',
    },
  },
}

/** Packages of this repository whose versions a user's project gets. */
const VARIANTS = [
  { express: 'express', types: '@types/express', ioredis: 'ioredis', other: 'redis' },
  { express: 'express4', types: '@types/express4', ioredis: 'ioredis5', other: 'iovalkey' },
]

describe.each(VARIANTS)(
  'the installed tarball beside $express',
  ({ express, types, ioredis, other }) => {
    let project: Project

    beforeAll(async () => {
      project = await createProject()
      await project.install(inject('packed').tarball, express, types, '@types/node', 'jose')
    })

    afterAll(() => project?.remove())

    async function runScenario(program: string): Promise<unknown> {
      return JSON.parse(await project.run(program))
    }

    it('installs without ioredis', () => {
      expect(project.has('express-service-auth')).toBe(true)
      expect(project.has('ioredis')).toBe(false)
    })

    it('guards a server that imports it', async () => {
      expect(await runScenario('import.mjs')).toEqual(EXPECTED)
    })

    it('guards a server that requires it', async () => {
      expect(await runScenario('require.cjs')).toEqual(EXPECTED)
    })

    it.each(['nodenext', 'bundler'] as const)(
      'guards a server compiled with moduleResolution %s',
      async (moduleResolution) => {
        await project.compile('program.mts', moduleResolution)
        expect(await runScenario('program.mjs')).toEqual(EXPECTED)
      },
    )

    it('tests a server with what it brings for tests', async () => {
      await project.compile('testing.mts', 'nodenext')
      expect(await project.run('testing.mjs')).toBe('200 401 401\n')
    })

    it('asks for a token with its client, and takes its failure', async () => {
      await project.compile('client.mts', 'nodenext')
      expect(await project.run('client.mjs')).toBe('core_unreachable cold\nended by itself\n')
    })

    it('runs its command, which says that every client of Redis is missing', async () => {
      expect(await project.run('command.mjs')).toMatch(
        /^0 \d+\.\d+\.\d+\n2 service-auth: none of ioredis, iovalkey and redis is installed: run npm install ioredis\n$/,
      )
    })

    it(`runs its command with ${other} once that is installed`, async () => {
      await project.install(other)
      expect(await project.run('command.mjs')).toMatch(/\n3 service-auth: .*ECONNREFUSED/)
    })

    it(`takes ${ioredis} once it is installed`, async () => {
      await project.install(ioredis)
      await project.compile('redis.mts', 'nodenext')
      expect(await project.run('redis.mjs')).toBe('ended by itself\n')
      expect(await project.run('command.mjs')).toMatch(/\n3 service-auth: .*ECONNREFUSED/)
    })

    it('takes OpenTelemetry and pino once they are installed', async () => {
      expect(project.has('@opentelemetry/api')).toBe(false)
      await project.install('@opentelemetry/api', '@opentelemetry/sdk-metrics', 'pino')
      await project.compile('telemetry.mts', 'nodenext')
      expect(await project.run('telemetry.mjs')).toBe('ended by itself\n')
    })
  },
)
