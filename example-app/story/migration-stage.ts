import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import express from 'express'
import {
  type CoreClient,
  coreClient,
  fileJournal,
  type Migration,
  type MigrationProgress,
  migrationEndpoint,
  openMigration,
} from 'express-service-auth/migration'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { type IdentityCore, startIdentityCore } from '../identity-core/identity-core.js'
import { listen } from '../listen.js'
import { removeTemporaryFolder, temporaryFolder } from '../temporary-folder.js'
import { EARLIER_ACCOUNTS, LATE_SIGN_UP, SOURCE } from './migration-source.js'

/** The core, a migration into it and the endpoint for late sign-ups, in this process. */
export interface MigrationStage {
  readonly core: IdentityCore
  readonly apiKey: string
  readonly client: CoreClient
  readonly migration: Migration
  /** The events of the run since this was asked last. */
  takeEvents(): readonly MigrationProgress[]
  /** Lets the reply to the nth call that stages be lost, after the core has staged. */
  loseReply(nth: number): void
  /** Writes a file of corrections; resolves with its path. */
  writeCorrections(lines: readonly object[]): Promise<string>
  readonly folder: string
  readonly endpointUrl: string
  /** What the older service presents to the endpoint. */
  readonly token: string
  close(): Promise<void>
}

export interface MigrationStageOptions {
  readonly apiKey: string
  readonly port: number
  /** A database that nobody has used yet; without it one is made, which takes seconds. */
  readonly database: string | undefined
}

export async function setMigrationStage(options: MigrationStageOptions): Promise<MigrationStage> {
  const { apiKey, port } = options
  const folder = await temporaryFolder('migration-story-')
  const database = options.database ?? join(folder, 'database')
  const core = await startIdentityCore({
    apiKey,
    port,
    users: { database, job: { intervalMs: 'off' } },
  })
  const wire = losing()
  const client = coreClient({ baseUrl: core.url, apiKey, fetch: wire.fetch })
  for (const account of EARLIER_ACCOUNTS) await client.importUser(account)
  const source = join(folder, 'users.ndjson')
  await writeFile(source, linesOf(SOURCE), { mode: 0o600 })

  let events: MigrationProgress[] = []
  const journal = await fileJournal(join(folder, 'journal'))
  const migration = await openMigration({
    core: client,
    source: { file: source },
    journal,
    batchUsers: 2,
    settleSeconds: 0,
    pollSeconds: 1,
    async onProgress(event) {
      events.push(event)
      // The core's job comes every five minutes; nobody wants to wait for it here.
      if (event.type === 'waiting') await core.runJob()
    },
  })
  const token = randomBytes(24).toString('base64url')
  const endpoint = await listen(endpointApp(client, token), 0)
  return {
    core,
    apiKey,
    client,
    migration,
    takeEvents() {
      const taken = events
      events = []
      return taken
    },
    loseReply: wire.loseReply,
    async writeCorrections(lines) {
      const file = join(folder, 'fix.ndjson')
      await writeFile(file, linesOf(lines), { mode: 0o600 })
      return file
    },
    folder,
    endpointUrl: `${endpoint.url}/migrate-user`,
    token,
    async close() {
      await endpoint.close()
      await migration.close()
      await journal.close()
      await core.close()
      await removeTemporaryFolder(folder)
    },
  }
}

const linesOf = (values: readonly object[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('')

function endpointApp(core: CoreClient, token: string): express.Express {
  const { provider, connection } = LATE_SIGN_UP
  const minute = { duration: 60 }
  const endpoint = migrationEndpoint({
    core,
    issuers: {
      legacy: {
        tokens: [token],
        withoutOrganization: ['public'],
        connections: [{ provider, connection, as: { recipeId: 'emailpassword' } }],
      },
    },
    loadUser: ({ externalUserId }) =>
      externalUserId === LATE_SIGN_UP.userId ? { identities: [LATE_SIGN_UP] } : undefined,
    limits: {
      credential: new RateLimiterMemory({ points: 600, ...minute }),
      user: new RateLimiterMemory({ points: 10, ...minute }),
    },
  })
  return express().use('/migrate-user', endpoint)
}

function losing() {
  let untilLost = 0
  const fetchOrLose: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init)
    const isStaging = init?.method === 'POST' && String(input).endsWith('/bulk-import/users')
    if (!isStaging || untilLost === 0) return response
    untilLost -= 1
    if (untilLost > 0) return response
    await response.text()
    throw new TypeError('the reply was lost on the way')
  }
  const loseReply = (nth: number) => {
    untilLost = nth
  }
  return { fetch: fetchOrLose, loseReply }
}
