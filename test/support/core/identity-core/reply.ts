import type { ServerResponse } from 'node:http'
import { Refused } from '../../../../src/testing/core/mint.js'
import { BadInput } from './input.js'

export interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  /** An object is sent as JSON. Errors are text, even if that text is JSON. */
  readonly body: object | string
}

/** The server of the core sends no reason phrase. */
const NO_REASON = ''

export function toErrorReply(error: unknown): Reply {
  if (error instanceof BadInput) return { status: 400, body: error.message }
  if (error instanceof Refused) return { status: error.status, body: error.message }
  console.error(error)
  return { status: 500, body: 'Internal Error' }
}

/** The server of the core closes the connection after these statuses. */
const STATUSES_THAT_CLOSE = new Set([400, 408, 411, 413, 414, 500, 501, 503])
/** The server of the core sends longer bodies in chunks. */
const MAX_BUFFER_BYTES = 8192

/** Like the core: each text ends with a line break, and errors are `text/html`. */
export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  const isText = typeof body === 'string'
  const bytes = Buffer.from(`${isText ? body : JSON.stringify(body)}\n`)
  const type = isText ? 'text/html;charset=UTF-8' : 'application/json;charset=UTF-8'
  const own = {
    'content-type': type,
    ...(bytes.length <= MAX_BUFFER_BYTES && { 'content-length': bytes.length }),
    ...(STATUSES_THAT_CLOSE.has(status) && { connection: 'close' }),
  }
  response.writeHead(status, NO_REASON, { ...own, ...headers })
  // A body that is only passed to `end` is never sent in chunks.
  response.write(bytes)
  response.end()
}
