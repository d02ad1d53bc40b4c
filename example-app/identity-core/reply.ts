import type { ServerResponse } from 'node:http'
import { BadInput } from './json-input.js'

export interface Reply {
  readonly status: number
  readonly headers?: Record<string, string>
  /** An object is sent as JSON. Errors are text, even when that text is JSON. */
  readonly body: object | string
}

/** The request is refused with this status and text. */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number

  constructor(status: number, text: string) {
    super(text)
    this.status = status
  }
}

export function toErrorReply(error: unknown): Reply {
  if (error instanceof BadInput) return { status: 400, body: error.message }
  if (error instanceof Refused) {
    const { status, message: body } = error
    // The rest of a body that is too large is not read.
    return status === 413 ? { status, body, headers: { connection: 'close' } } : { status, body }
  }
  console.error(error)
  return { status: 500, body: 'Internal Error' }
}

/** As the core: each text ends its line, and what is no success is `text/html`. */
export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  const isText = typeof body === 'string'
  const bytes = Buffer.from(`${isText ? body : JSON.stringify(body)}\n`)
  const type = isText ? 'text/html;charset=UTF-8' : 'application/json;charset=UTF-8'
  const own = { 'content-type': type, 'content-length': bytes.length }
  response.writeHead(status, { ...own, ...headers }).end(bytes)
}
