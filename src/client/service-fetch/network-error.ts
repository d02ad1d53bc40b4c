import { systemCodeOf } from '../../base/connection-fault.js'

/**
 * The error of an answer that did not come, or not as a whole. Of the error of `fetch` it keeps Node's
 * own code (`ECONNREFUSED`) alone: that one can hold what came back, and a server may send back the
 * token.
 */
export function lostAnswer(thrown: unknown): TypeError {
  const code = systemCodeOf(thrown)
  const error = new TypeError(`the answer was lost${code === undefined ? '' : `: ${code}`}`)
  return code === undefined ? error : Object.assign(error, { code })
}
