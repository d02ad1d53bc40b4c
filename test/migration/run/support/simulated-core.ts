import { randomUUID } from 'node:crypto'
import type {
  CoreClient,
  CoreUser,
  RowStatus,
  StagedRow,
} from '../../../../src/migration/core/core-client.js'
import { CoreError } from '../../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../../src/migration/core/import-user.js'
import type { SimulatedTime } from './simulated-time.js'

/** What becomes of a write: its effect may come before its end, after it, or never. */
export type Fate =
  | 'done'
  | 'lost before'
  | 'lost after'
  | 'refused'
  | { readonly landsAfterMs: number }

/**
 * `nobody` leaves the rows of the chunk as they are; `chunk` fails all of them with a text without a
 * code, `core` with a code that blames the core.
 */
export type Blame = 'culprit' | 'innocent' | 'nobody' | 'chunk' | 'core'

interface SimulatedAccount {
  readonly coreId: string
  readonly email: string
  /** By the simulated clock. */
  readonly madeAt: number
}

export interface SimulatedCore extends CoreClient {
  /** Rows that were ever staged of an identity. */
  readonly staged: Map<string, number>
  readonly accounts: Map<string, SimulatedAccount>
  readonly rows_: StagedRow[]
  readonly jobRuns: number
  runJob(most: number): void
  /** Stages users without a call of the run. */
  stageNow(users: readonly ImportUser[]): void
  importNow(user: ImportUser): boolean
  /** As the hook does after the preflight: when users are staged next. */
  importLater(user: ImportUser): void
}

export interface Plan {
  /** Asked for each write; `done` once it has none left. */
  readonly fate: () => Fate
  /** Whom the job blames for a chunk that it cannot import. Default: the user at fault. */
  readonly blame?: () => Blame
  /** Users that the core cannot import, and does not say why. */
  readonly poison?: ReadonlySet<string>
  /** Called before and after each call has had its effect; may throw. */
  readonly onCall?: () => void
  readonly time: Pick<SimulatedTime, 'at' | 'now' | 'elapsedMs'> & { pass(ms: number): unknown }
}

const PAGE = 5
const A_CALL_MS = 7

const lost = () => new CoreError('no reply', { code: 'timeout', outcome: 'unknown' })
const refused = () => new CoreError('no connection', { code: 'unreachable', outcome: 'refused' })

const emailOf = (user: { readonly loginMethods: readonly { readonly email?: string }[] }): string =>
  user.loginMethods[0]?.email ?? ''

/** As `coreClient` returns the text. */
const TAKEN_TEXT = 'E003: A user with email … already exists in emailpassword loginMethod.'

/** As a core says it of a fault that it has no code for. */
const UNKNOWN_TEXT = 'java.sql.BatchUpdateException: Batch entry 3 was aborted'

const CORE_TEXT =
  'E019: Account linking feature is not enabled for this app. Please contact support to enable it.'

/** The core's behaviour towards a run, in memory: staging, the job, look-ups, and lost replies. */
export function simulatedCore({
  fate,
  blame = () => 'culprit',
  poison = new Set(),
  onCall = () => {},
  time,
}: Plan): SimulatedCore {
  const accounts: SimulatedCore['accounts'] = new Map()
  const staged = new Map<string, number>()
  const later: ImportUser[] = []
  let rows: StagedRow[] = []
  let jobRuns = 0

  function stageNow(users: readonly ImportUser[]): void {
    for (const user of users) {
      const { externalUserId = '' } = user
      staged.set(externalUserId, (staged.get(externalUserId) ?? 0) + 1)
      rows.unshift({
        externalUserId,
        loginMethods: user.loginMethods.map(({ recipeId, email = '' }) => ({ recipeId, email })),
        id: randomUUID(),
        status: 'NEW',
        createdAt: time.now(),
        updatedAt: time.now(),
      })
    }
  }

  function importNow(user: ImportUser | StagedRow, coreId = randomUUID() as string): boolean {
    const email = emailOf(user)
    const taken = [...accounts.values()].some((account) => account.email === email)
    if (taken || !canImport(user) || accounts.has(user.externalUserId ?? '')) return false
    accounts.set(user.externalUserId ?? coreId, { coreId, email, madeAt: time.elapsedMs() })
    return true
  }

  /** As a core: a chunk is imported as a whole or not at all, and tried once in a run. */
  function runJob(most: number): void {
    jobRuns += 1
    const due = rows.filter(({ status }) => status !== 'FAILED').reverse()
    for (let start = 0; start < due.length; start += most) {
      importChunk(due.slice(start, start + most))
    }
  }

  function importChunk(chunk: readonly StagedRow[]): void {
    const before = new Map(accounts)
    const culprit = chunk.find((row) => !importNow(row, row.id))
    if (culprit === undefined) {
      for (const { id } of chunk) mark(id, undefined)
      return
    }
    accounts.clear()
    for (const [id, account] of before) accounts.set(id, account)
    for (const row of chunk) mark(row.id, { ...row, status: 'PROCESSING' })
    const whom = canImport(culprit) ? blame() : 'nobody'
    const blamed = {
      culprit: [culprit],
      innocent: [chunk.find(({ id }) => id !== culprit.id) ?? culprit],
      nobody: [],
      chunk,
      core: chunk,
    }[whom]
    for (const row of blamed) {
      const errorMessage = { chunk: UNKNOWN_TEXT, core: CORE_TEXT }[whom as string] ?? TAKEN_TEXT
      mark(row.id, { ...row, status: 'FAILED', errorMessage })
    }
  }

  const canImport = ({ externalUserId = '' }: ImportUser | StagedRow): boolean =>
    !poison.has(externalUserId)

  function mark(rowId: string, as: StagedRow | undefined): void {
    rows = rows.flatMap((each) => (each.id === rowId ? (as ?? []) : each))
  }

  async function read<Result>(answer: () => Result): Promise<Result> {
    await undefined
    await time.pass(A_CALL_MS)
    onCall()
    return answer()
  }

  async function write<Result>(effect: () => Result): Promise<Result> {
    await undefined
    onCall()
    await time.pass(A_CALL_MS)
    const becomes = fate()
    if (becomes === 'refused') throw refused()
    if (becomes === 'lost before') throw lost()
    if (typeof becomes === 'object') {
      time.at(becomes.landsAfterMs, effect)
      throw lost()
    }
    const result = effect()
    onCall()
    await time.pass(0)
    if (becomes === 'lost after') throw lost()
    return result
  }

  const userOf = (asked: string): CoreUser | undefined => {
    const [id, account] =
      [...accounts].find(([id, { coreId }]) => id === asked || coreId === asked) ?? []
    if (id === undefined || account === undefined) return undefined
    const method = {
      recipeId: 'emailpassword',
      recipeUserId: id,
      tenantIds: ['public'],
      verified: true,
      timeJoined: 1_700_000_000_000,
      email: account.email,
    }
    return {
      id,
      isPrimaryUser: false,
      tenantIds: ['public'],
      timeJoined: 1_700_000_000_000,
      emails: [account.email],
      phoneNumbers: [],
      thirdParty: [],
      loginMethods: [method],
    }
  }

  async function listRows(query: { status?: RowStatus; paginationToken?: string } = {}) {
    return read(() => {
      const all = rows.filter(({ status }) => query.status === undefined || status === query.status)
      const from = query.paginationToken === undefined ? 0 : after(all, query.paginationToken)
      const next = all[from + PAGE]
      const users = all.slice(from, from + PAGE)
      return next === undefined ? { users } : { users, nextPaginationToken: next.id }
    })
  }

  /** New rows come to the front, and others leave: a token names the row, not a place. */
  function after(all: readonly StagedRow[], token: string): number {
    const at = all.findIndex(({ id }) => id === token)
    return at === -1 ? 0 : at
  }

  return {
    accounts,
    staged,
    get rows_() {
      return rows
    },
    get jobRuns() {
      return jobRuns
    },
    runJob,
    stageNow,
    importNow,
    importLater: (user) => later.push(user),
    stageUsers(users) {
      for (const user of later.splice(0)) importNow(user)
      return write(() => {
        stageNow(users)
        return { outcome: 'staged' as const }
      })
    },
    importUser: (user) =>
      write(() => {
        const { externalUserId = '' } = user
        if (!canImport(user)) return { outcome: 'rejected' as const, errors: [UNKNOWN_TEXT] }
        if (!importNow(user)) return { outcome: 'rejected' as const, errors: [TAKEN_TEXT] }
        return { outcome: 'created' as const, user: userOf(externalUserId) as CoreUser }
      }),
    listRows,
    async *rows(status) {
      let paginationToken: string | undefined
      do {
        const query = {
          ...(status === undefined ? {} : { status }),
          ...(paginationToken === undefined ? {} : { paginationToken }),
        }
        const page = await listRows(query)
        yield* page.users
        paginationToken = 'nextPaginationToken' in page ? page.nextPaginationToken : undefined
      } while (paginationToken !== undefined)
    },
    countRows: (status) =>
      read(() => rows.filter((row) => status === undefined || row.status === status).length),
    deleteRows: (ids) =>
      write(() => {
        const present = new Set(rows.map(({ id }) => id))
        const deletedIds = ids.filter((id) => present.has(id))
        rows = rows.filter(({ id }) => !ids.includes(id))
        return { deletedIds, invalidIds: ids.filter((id) => !present.has(id)) }
      }),
    coreIdOf: (id) => read(() => accounts.get(id)?.coreId),
    user: (id) => read(() => userOf(id)),
    usersWith: (_tenant, info) =>
      read(() =>
        [...accounts].flatMap(([id, { email }]) =>
          'email' in info && info.email === email ? [userOf(id) as CoreUser] : [],
        ),
      ),
    rolesOf: async () => [],
    metadataOf: async () => ({}),
    totpDevicesOf: async () => [],
    tenants: async () => [{ tenantId: 'public' }],
    roles: async () => [],
    features: async () => [],
  }
}
