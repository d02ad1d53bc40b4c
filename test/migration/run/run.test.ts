import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import type { MigrationOptions } from '../../../src/migration/run/migration.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { IdentityReport } from '../../../src/migration/run/report.js'
import {
  accountsByExternalId,
  type StandInCore,
  startStandInCore,
} from '../../support/core/stand-in-core.js'
import { serve } from '../../support/receiver/serve.js'
import { people, person } from './support/people.js'
import { QUICK_TIMING } from './support/quick-timing.js'

type CoreAt = Partial<Parameters<typeof coreClient>[0]>

/** A proxy before the core that pauses after each number of requests: it then answers 429. */
async function startLimiter(coreUrl: string, limit: Limit) {
  let refusesUntil = 0
  let taken = 0
  let refused = 0
  const { url, close } = await serve(async (incoming, outgoing) => {
    const body = await buffer(incoming)
    const now = performance.now()
    if (now < refusesUntil) {
      refused += 1
      outgoing.writeHead(429, limit.headers).end('slow down')
      return
    }
    taken += 1
    // By count alone: a slow machine would never exceed a rate.
    if (taken % limit.requests === 0) refusesUntil = now + limit.pauseMs
    const { method = '', headers } = incoming
    const reply = await fetch(`${coreUrl}${incoming.url}`, {
      method,
      headers: { 'api-key': String(headers['api-key']), 'content-type': 'application/json' },
      ...(method !== 'GET' && { body }),
    })
    outgoing.writeHead(reply.status).end(Buffer.from(await reply.arrayBuffer()))
  })
  onTestFinished(close)
  return { url, refused: () => refused }
}

interface Limit {
  readonly requests: number
  /** How long it refuses all requests after that many. */
  readonly pauseMs: number
  readonly headers?: Record<string, string>
}

/** Users of a run before a proxy: more requests than it lets through at once. */
const LIMITED = 30

describe('a run on the stand-in core', () => {
  let standIn: StandInCore
  let folder: string
  beforeAll(async () => {
    standIn = await startStandInCore({ roles: ['member'] })
    folder = await mkdtemp(join(tmpdir(), 'esa-run-'))
  }, 60_000)
  afterAll(async () => {
    await standIn.close()
    await rm(folder, { recursive: true, force: true })
  })

  const nothing = async () => {}

  async function open(
    name: string,
    records: readonly object[],
    beforeJob = nothing,
    at: CoreAt = {},
  ) {
    const file = join(folder, `${name}.ndjson`)
    await writeFile(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
    const core = coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey, ...at })
    const journal = await fileJournal(join(folder, name))
    const options: MigrationOptions = { core, source: { file }, journal, batchUsers: 7 }
    return openMigrationWith(
      {
        ...options,
        async onProgress({ type }) {
          if (type !== 'waiting') return
          await beforeJob()
          await standIn.runJob()
        },
      },
      QUICK_TIMING,
    )
  }

  it('stages nothing while the core lacks what the source needs', async () => {
    const userRoles = [{ role: 'owner', tenantIds: ['public'] }]
    const migration = await open('roles', [...people(3, 'role'), person('boss', { userRoles })])
    const report = await migration.run()
    expect(report).toMatchObject({
      state: 'preflight_failed',
      counts: { pending: 4 },
      findings: [{ code: 'role_missing', severity: 'fault', line: 4, records: 1 }],
    })
    expect(await standIn.query('select id from bulk_import_users')).toEqual([])
    await migration.close()
  })

  it.each<[string, Limit, CoreAt]>([
    ['refuses requests for half a second after every 25', { requests: 25, pauseMs: 500 }, {}],
    [
      'asks to wait for longer than a call may take',
      { requests: 45, pauseMs: 1500, headers: { 'retry-after': '60' } },
      { timeoutMs: 3000, stageTimeoutMs: 3000 },
    ],
  ])('finishes, slower, before a proxy that %s', async (name, limit, at) => {
    const limiter = await startLimiter(standIn.url, limit)
    const prefix = `limited-${limit.requests}`
    const options = { baseUrl: limiter.url, ...at }
    const migration = await open(name, people(LIMITED, prefix), nothing, options)
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: LIMITED } })
    expect(limiter.refused()).toBeGreaterThan(0)
    const accounts = await accountsByExternalId(standIn)
    for (let user = 0; user < LIMITED; user++) expect(accounts.has(`${prefix}-${user}`)).toBe(true)
    await migration.close()
  })

  it('takes a faulty source to complete, with a correction', async () => {
    const records: object[] = people(20, 'story')
    records[4] = { externalUserId: 'story-4', loginMethods: [] }
    const core = coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey })
    const early = { ...person('story-7'), externalUserId: 'known-before' }
    await core.importUser(early as never)
    await core.importUser(person('story-11') as never)
    const migration = await open('story', records, async () => {
      const late = { ...person('story-9'), externalUserId: 'not-of-the-source' }
      if ((await core.coreIdOf('not-of-the-source')) === undefined) {
        await core.importUser(late as never)
      }
    })

    const first = await migration.run()
    expect(first).toMatchObject({
      state: 'to_correct',
      counts: { invalid: 2, failed: 1, reconciled: 17 },
      findings: [
        { code: 'record_invalid', severity: 'notice', line: 5 },
        { code: 'login_taken', severity: 'notice', line: 8 },
      ],
    })
    const identities: IdentityReport[] = []
    for await (const identity of migration.identities()) identities.push(identity)
    expect(identities[7]).toMatchObject({
      state: 'invalid',
      code: 'login_taken',
      heldBy: await core.coreIdOf('known-before'),
    })
    expect(identities[9]).toMatchObject({
      state: 'failed',
      line: 10,
      code: 'E003',
      heldBy: await core.coreIdOf('not-of-the-source'),
    })
    expect(identities[4]?.errors?.[0]?.message).toBe('A user needs at least one login method.')

    const corrections = join(folder, 'corrections.ndjson')
    const fixed = { replaces: 'story-4', user: person('story-4') }
    const leftOut = ['story-7', 'story-9'].map((id) => ({ leaveOut: id, reason: 'another id' }))
    const lines = [fixed, ...leftOut].map((correction) => `${JSON.stringify(correction)}\n`)
    await writeFile(corrections, lines.join(''))
    const last = await migration.correct({ file: corrections })
    expect(last).toMatchObject({ state: 'complete', counts: { reconciled: 18, left_out: 2 } })
    const accounts = await accountsByExternalId(standIn)
    for (let user = 0; user < 20; user++)
      expect(accounts.has(`story-${user}`)).toBe(user !== 7 && user !== 9)
    await migration.close()

    const journal = await readFile(join(folder, 'story', 'journal.ndjson'), 'utf8')
    expect(journal).not.toMatch(/@example\.com|\$2a\$/)
  })
})
