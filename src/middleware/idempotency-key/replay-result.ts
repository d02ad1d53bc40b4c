import type { Response } from 'express'
import { isBodyless } from '../../idempotency/buffered-response/head.js'
import { keepHeadInOrder } from '../../idempotency/buffered-response/queued-head.js'
import type { StoredResult } from '../../idempotency/buffered-response/stored-result.js'

const LENGTH = 'content-length'

/**
 * Answers with a kept result: raw octets, to which Express adds nothing. The head is left to `end`, as a
 * handler's is: an outer middleware may change it there.
 */
export function replayResult(response: Response, { status, headers, body }: StoredResult): void {
  const isHead = response.req.method === 'HEAD'
  const hasBody = !isHead && !isBodyless(status)
  const replayed = headers.filter(([name]) => name !== LENGTH || isHead)
  for (const [name] of replayed) response.removeHeader(name)
  for (const [name, value] of replayed) response.appendHeader(name, value)
  response.setHeader('Idempotent-Replayed', 'true')
  response.setHeader('Cache-Control', 'no-store')
  // Where the handler has announced no length, Node does, of what outer middlewares make of the body.
  const isAnnounced = headers.some(([name]) => name === LENGTH)
  if (hasBody && isAnnounced) response.setHeader('Content-Length', body.byteLength)
  keepHeadInOrder(response)
  response.statusCode = status
  // With `rejectNonStandardBodyWrites`, Node throws at an empty body, too.
  response.end(hasBody && body.byteLength > 0 ? body : undefined)
}
