import { currentSearch } from './session.js'
import { watchErrors } from './watch-errors.js'
import { watchChildren, watchConsole, watchStandardStreams } from './watch-output.js'
import { watchRequests } from './watch-requests.js'

/**
 * Watches what goes into this process and comes out of it, for good. To be called once a process,
 * before a search begins: a worker runs several test files.
 */
export function watchProcess(): void {
  if (currentSearch() !== undefined) return
  watchRequests()
  watchConsole()
  watchStandardStreams()
  watchChildren()
  watchErrors()
}
