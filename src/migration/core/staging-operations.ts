import type { DirectImport, RowQuery, Staging } from './core-client.js'
import { CoreError } from './core-error.js'
import {
  type Accepted,
  formed,
  MAX_ANSWER_BYTES,
  MAX_RECORDS_BYTES,
  type Operation,
} from './core-operation.js'
import { cutSecrets, secretsOf } from './cut-secrets.js'
import type { ImportUser } from './import-user.js'
import type { RowStatus, StagedRow } from './reply.js'
import * as schemas from './reply-schemas.js'

export const stage = (users: readonly ImportUser[]): Operation<Staging> => ({
  method: 'POST',
  path: '/bulk-import/users',
  body: { users },
  time: 'staging',
  maxAnswerBytes: MAX_RECORDS_BYTES,
  accept: (reply) => {
    const result = schemas.staged.safeParse(reply)
    if (!result.success) return undefined
    const { users: staged } = result.data
    // Every core replies to an empty call without users.
    if (staged === undefined) return { value: { outcome: 'staged' } }
    return staged.length === users.length
      ? { value: { outcome: 'staged', users: staged } }
      : undefined
  },
  acceptRefusal: (reply) => stagingRejection(reply, users),
})

function stagingRejection(
  reply: unknown,
  users: readonly ImportUser[],
): Accepted<Staging> | undefined {
  const result = schemas.stagingRejection.safeParse(reply)
  if (!result.success) return undefined
  const rejected = result.data.users
  if (rejected.some(({ index }) => index >= users.length)) return undefined
  return {
    value: {
      outcome: 'rejected',
      users: rejected.map(({ index, errors }) => {
        const secrets = secretsOf(users[index])
        return { index, errors: errors.map((text) => cutSecrets(text, secrets)) }
      }),
    },
  }
}

export const importDirectly = (user: ImportUser): Operation<DirectImport> => ({
  method: 'POST',
  path: '/bulk-import/import',
  body: user,
  time: 'staging',
  maxAnswerBytes: MAX_RECORDS_BYTES,
  accept: formed(schemas.imported, (reply) => ({ outcome: 'created', user: reply.user })),
  acceptRefusal: formed(schemas.importRejection, ({ errors }) => {
    const secrets = secretsOf(user)
    return { outcome: 'rejected', errors: errors.map((text) => cutSecrets(text, secrets)) }
  }),
})

export interface RowPage {
  readonly users: readonly StagedRow[]
  readonly nextPaginationToken?: string
}

export const listRows = ({ status, limit, paginationToken }: RowQuery): Operation<RowPage> => ({
  method: 'GET',
  path: '/bulk-import/users',
  query: { status, limit: limit?.toString(), paginationToken },
  time: 'usual',
  maxAnswerBytes: MAX_RECORDS_BYTES,
  accept: (reply) => {
    const result = schemas.rowPage.safeParse(reply)
    if (!result.success) return undefined
    const { status: _, ...page } = result.data
    const given = (reply as { users: unknown[] }).users
    const users = page.users.map((row, index) => withoutQuotations(row, given[index]))
    return { value: { ...page, users } }
  },
})

/** Like `listRows`, for a caller that can request fewer rows. */
export const listRowsThatFit = (query: RowQuery): Operation<RowPage | 'too_large'> => ({
  ...listRows(query),
  whenTooLarge: 'too_large',
})

/** Removes the row's secrets from its error message, which may quote the row. */
function withoutQuotations(row: StagedRow, given: unknown): StagedRow {
  if (row.errorMessage === undefined) return row
  return { ...row, errorMessage: cutSecrets(row.errorMessage, secretsOf(given)) }
}

export const countRows = (status: RowStatus | undefined): Operation<number> => ({
  method: 'GET',
  path: '/bulk-import/users/count',
  query: { status },
  time: 'usual',
  maxAnswerBytes: MAX_ANSWER_BYTES,
  accept: formed(schemas.rowCount, ({ count }) => count),
})

interface Deletion {
  readonly deletedIds: readonly string[]
  readonly invalidIds: readonly string[]
}

export const deleteRows = (ids: readonly string[]): Operation<Deletion> => ({
  method: 'POST',
  path: '/bulk-import/users/remove',
  body: { ids },
  time: 'usual',
  maxAnswerBytes: MAX_ANSWER_BYTES,
  accept: formed(schemas.deletion, (reply) => reply),
})

/** The core's limit of rows per page. */
const MAX_ROWS = 500

/** Reads a page. Resolves with `too_large` if the page must be requested with fewer rows. */
type PageOf = (query: RowQuery & { readonly limit: number }) => Promise<RowPage | 'too_large'>

/**
 * Yields the rows of all pages. A page that is too large is requested again with half the rows.
 *
 * @throws CoreError if the pages do not end.
 */
export async function* allRows(
  pageOf: PageOf,
  status: RowStatus | undefined,
): AsyncGenerator<StagedRow, void, undefined> {
  const isSeen = loopDetector()
  let limit = MAX_ROWS
  let paginationToken: string | undefined
  do {
    const page = await pageOf({
      limit,
      ...(status !== undefined && { status }),
      ...(paginationToken !== undefined && { paginationToken }),
    })
    if (page === 'too_large') {
      if (limit === 1) throw leadsNowhere('one row is too large')
      limit = Math.floor(limit / 2)
      continue
    }
    yield* page.users
    paginationToken = page.nextPaginationToken
    if (paginationToken === undefined) return
    if (page.users.length === 0) throw leadsNowhere('a page has no rows and is not the last')
    if (isSeen(paginationToken)) throw leadsNowhere('the pages of rows begin again')
  } while (true)
}

const leadsNowhere = (why: string): CoreError =>
  new CoreError(`GET /bulk-import/users: ${why}`, {
    code: 'malformed_reply',
    outcome: 'refused',
    status: 200,
  })

/**
 * Detects a loop without storing every token, by Brent's algorithm: it compares each token with a stored
 * one, which it replaces with the current one after 1, 2, 4, 8 … steps.
 */
function loopDetector(): (token: string) => boolean {
  let kept: string | undefined
  let steps = 0
  let mostSteps = 1
  return (token) => {
    if (token === kept) return true
    steps += 1
    if (steps === mostSteps) {
      kept = token
      steps = 0
      mostSteps *= 2
    }
    return false
  }
}
