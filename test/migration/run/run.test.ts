import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import type { MigrationOptions } from '../../../src/migration/run/migration.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import {
  accountsByExternalId,
  type StandInCore,
  startStandInCore,
} from '../../support/core/stand-in-core.js'
import { serve } from '../../support/receiver/serve.js'
import { people } from './support/people.js'
import { QUICK_TIMING } from './support/quick-timing.js'

type CoreAt = Omit<Parameters<typeof coreClient>[0], 'apiKey'>

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

  async function open(name: string, records: readonly object[], at: CoreAt) {
    const file = join(folder, `${name}.ndjson`)
    await writeFile(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''))
    const core = coreClient({ apiKey: standIn.apiKey, ...at })
    const journal = await fileJournal(join(folder, name))
    const onProgress: MigrationOptions['onProgress'] = ({ type }) =>
      type === 'waiting' ? standIn.runJob() : undefined
    const options = { core, source: { file }, journal, batchUsers: 7, onProgress }
    return openMigrationWith(options, QUICK_TIMING)
  }

  it.each<[string, Limit, Partial<CoreAt>]>([
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
    const migration = await open(name, people(LIMITED, prefix), options)
    const report = await migration.run()
    expect(report).toMatchObject({ state: 'complete', counts: { reconciled: LIMITED } })
    expect(limiter.refused()).toBeGreaterThan(0)
    const accounts = await accountsByExternalId(standIn)
    for (let user = 0; user < LIMITED; user++) expect(accounts.has(`${prefix}-${user}`)).toBe(true)
    await migration.close()
  })
})
