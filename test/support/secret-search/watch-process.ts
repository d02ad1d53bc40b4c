import { currentSearch } from './session.js'
import { watchErrors } from './watch-errors.js'
import { watchChildren, watchConsole, watchStandardStreams } from './watch-output.js'
import { watchRequests } from './watch-requests.js'

/**
 * Watches requests and output of this process until its end. Only the first call in a process has an effect,
 * because a worker runs several test files. Call it before `beginSession`.
 */
export function watchProcess(): void {
  if (currentSearch() !== undefined) return
  watchRequests()
  watchConsole()
  watchStandardStreams()
  watchChildren()
  watchErrors()
}
