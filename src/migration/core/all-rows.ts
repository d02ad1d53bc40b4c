import type { RowQuery } from './core-client.js'
import { CoreError } from './core-error.js'
import type { RowStatus, StagedRow } from './reply.js'
import type { RowPage } from './staging-operations.js'

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
