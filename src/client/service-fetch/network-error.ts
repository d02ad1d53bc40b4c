import { systemCodeOf } from '../../base/connection-fault.js'

/**
 * Returns the error for a missing or incomplete response. Of the error of `fetch` it keeps only Node's
 * error code (`ECONNREFUSED`), because that error can hold received data, and a server may send the
 * token back.
 */
export function networkError(thrown: unknown): TypeError {
  const code = systemCodeOf(thrown)
  const error = new TypeError(`the answer was lost${code === undefined ? '' : `: ${code}`}`)
  return code === undefined ? error : Object.assign(error, { code })
}
