import { randomUUID } from 'node:crypto'
import type { CoreClient } from '../../../../src/migration/core/core-client.js'
import { CoreError } from '../../../../src/migration/core/core-error.js'
import type { ImportUser } from '../../../../src/migration/core/import-user.js'
import type { CoreUser, RowStatus, StagedRow } from '../../../../src/migration/core/reply.js'
import type { SimulatedTime } from './simulated-time.js'

/** What becomes of a write: its effect may come before its end, after it, or never. */
export type Fate =
  | 'done'
  | 'lost before'
  | 'lost after'
  | 'refused'
  | { readonly landsAfterMs: number }

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
  runJob(most: number): void
  importNow(user: ImportUser): boolean
}

interface Plan {
  /** Asked for each write; `done` once it has none left. */
  readonly fate: () => Fate
  /** Called before and after each call has had its effect; may throw. */
  readonly onCall?: () => void
  readonly time: SimulatedTime
}

const PAGE = 5
const A_CALL_MS = 7

const lost = () => new CoreError('no reply', { code: 'timeout', outcome: 'unknown' })
const refused = () => new CoreError('no connection', { code: 'unreachable', outcome: 'refused' })

const emailOf = (user: { readonly loginMethods: readonly { readonly email?: string }[] }): string =>
  user.loginMethods[0]?.email ?? ''

/** The core's behaviour towards a run, in memory: staging, the job, look-ups, and lost replies. */
export function simulatedCore({ fate, onCall = () => {}, time }: Plan): SimulatedCore {
  const accounts: SimulatedCore['accounts'] = new Map()
  const staged = new Map<string, number>()
  let rows: StagedRow[] = []

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
    if (taken || accounts.has(user.externalUserId ?? '')) return false
    accounts.set(user.externalUserId ?? coreId, { coreId, email, madeAt: time.elapsedMs() })
    return true
  }

  function runJob(most: number): void {
    const due = rows.filter(({ status }) => status === 'NEW').slice(-most)
    for (const row of due) {
      if (importNow(row, row.id)) rows = rows.filter(({ id }) => id !== row.id)
      else {
        const errorMessage = `E003: A user with email ${emailOf(row)} already exists in emailpassword loginMethod.`
        rows = rows.map((each) =>
          each.id === row.id ? { ...row, status: 'FAILED', errorMessage } : each,
        )
      }
    }
  }

  async function read<Result>(answer: () => Result): Promise<Result> {
    await undefined
    time.pass(A_CALL_MS)
    onCall()
    return answer()
  }

  async function write<Result>(effect: () => Result): Promise<Result> {
    await undefined
    onCall()
    time.pass(A_CALL_MS)
    const becomes = fate()
    if (becomes === 'refused') throw refused()
    if (becomes === 'lost before') throw lost()
    if (typeof becomes === 'object') {
      time.at(becomes.landsAfterMs, effect)
      throw lost()
    }
    const result = effect()
    onCall()
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
    runJob,
    importNow,
    stageUsers: (users) =>
      write(() => {
        stageNow(users)
        return { outcome: 'staged' as const }
      }),
    async importUser() {
      throw new Error('no run imports directly')
    },
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
