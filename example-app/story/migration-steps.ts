import {
  CoreError,
  coreClient,
  type IdentityReport,
  type MigrationReport,
} from 'express-service-auth/migration'
import { startIdentityCore } from '../identity-core/identity-core.js'
import { CORRECTIONS, LATE_SIGN_UP, ROLE } from './migration-source.js'
import type { MigrationStage } from './migration-stage.js'

/** A step, its expected result, and how it goes, in one line. */
export interface MigrationStep {
  readonly title: string
  readonly expected: string
  play(): Promise<string>
}

/** The steps of the story, in order. */
export const migrationSteps = (stage: MigrationStage): MigrationStep[] => [
  ...staging(stage),
  ...correcting(stage),
  ...lateSignUp(stage),
  {
    title: 'a core whose database is in memory',
    expected: 'in_memory_database, refused',
    play: () => askInMemoryCore(stage.apiKey),
  },
]

function staging(stage: MigrationStage): MigrationStep[] {
  const { migration, core, apiKey } = stage
  let report: MigrationReport
  return [
    {
      title: 'the preflight finds that a role is missing',
      expected: 'preflight_failed: fault role_missing, notice provider_missing',
      async play() {
        const { state, findings } = await migration.run()
        const lines = findings.map(({ severity, code }) => `${severity} ${code}`)
        return `${state}: ${lines.join(', ')}`
      },
    },
    {
      title: 'four users in two calls, one reply is lost',
      expected: 'reply_lost, then reply_resolved; 4 sent',
      async play() {
        await putRole(core.url, apiKey)
        stage.takeEvents()
        stage.loseReply(2)
        report = await migration.run()
        const events = stage.takeEvents()
        const lost = events.filter(({ type }) => type.startsWith('reply')).map(({ type }) => type)
        const { pending, invalid } = events.find(({ type }) => type === 'waiting')?.counts ?? {}
        return `${lost.join(', then ')}; ${6 - (pending ?? 6) - (invalid ?? 0)} sent`
      },
    },
    {
      title: 'two are not sent, each with a reason',
      expected: 'eve login_taken, held by early-1; fay login_taken, held by early-2',
      play: () => heldBack(stage),
    },
    {
      title: 'no row waits, and that is not complete',
      expected: '0 rows wait: to_correct, not complete',
      async play() {
        const waiting = await Promise.all([
          stage.client.countRows('NEW'),
          stage.client.countRows('PROCESSING'),
        ])
        return `${waiting[0] + waiting[1]} rows wait: ${report.state}, not complete`
      },
    },
  ]
}

async function heldBack({ migration, client }: MigrationStage): Promise<string> {
  const identities: IdentityReport[] = []
  for await (const identity of migration.identities()) {
    if (identity.state === 'invalid') identities.push(identity)
  }
  const lines = identities.map(async ({ externalUserId, code, heldBy = '' }) => {
    const holder = await client.user(heldBy)
    return `${externalUserId} ${code}, held by ${holder?.id}`
  })
  return (await Promise.all(lines)).join('; ')
}

function correcting({ migration, writeCorrections }: MigrationStage): MigrationStep[] {
  return [
    {
      title: 'a person corrects one and leaves one out',
      expected: 'complete: 5 reconciled, 1 left out',
      async play() {
        return summary(await migration.correct({ file: await writeCorrections(CORRECTIONS) }))
      },
    },
    {
      title: 'each identity is looked up once more',
      expected: 'complete: 5 reconciled, 1 left out',
      play: async () => summary(await migration.reconcile()),
    },
  ]
}

const summary = ({ state, counts }: MigrationReport): string =>
  `${state}: ${counts.reconciled} reconciled, ${counts.left_out} left out`

function lateSignUp({ endpointUrl, token }: MigrationStage): MigrationStep[] {
  const { userId, provider, connection } = LATE_SIGN_UP
  const body = JSON.stringify({
    externalUserId: userId,
    identities: [{ provider, connection, userId }],
  })
  const send = async (bearer: string): Promise<string> => {
    const response = await fetch(endpointUrl, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body,
    })
    const text = await response.text()
    return response.ok ? `${response.status} ${text}` : String(response.status)
  }
  const answer = `200 {"status":"OK","userId":"${userId}"}`
  return [
    {
      title: 'somebody signs up in the older service',
      expected: answer,
      play: () => send(token),
    },
    { title: 'the same request again', expected: answer, play: () => send(token) },
    { title: 'with a wrong token', expected: '401', play: () => send(`${token}x`) },
  ]
}

async function askInMemoryCore(apiKey: string): Promise<string> {
  const core = await startIdentityCore({ apiKey })
  try {
    await coreClient({ baseUrl: core.url, apiKey }).countRows()
    return 'counted'
  } catch (error) {
    if (!(error instanceof CoreError)) throw error
    return `${error.code}, ${error.outcome}`
  } finally {
    await core.close()
  }
}

async function putRole(coreUrl: string, apiKey: string): Promise<void> {
  const response = await fetch(`${coreUrl}/recipe/role`, {
    method: 'PUT',
    headers: { 'api-key': apiKey, 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify({ role: ROLE, permissions: [] }),
  })
  if (!response.ok) throw new Error(`the core refuses the role: ${response.status}`)
}
