import type { Response } from 'express'
import { keepHeadInOrder } from '../held-response/queued-head.js'
import type { StoredResult } from '../held-response/result.js'

/** Answers with a kept result: raw octets, to which Express adds nothing. */
export function replayResult(response: Response, { status, headers, body }: StoredResult): void {
  for (const [name] of headers) response.removeHeader(name)
  for (const [name, value] of headers) response.appendHeader(name, value)
  response.setHeader('Idempotent-Replayed', 'true')
  response.setHeader('Cache-Control', 'no-store')
  const isBodyless = response.req.method === 'HEAD' || status === 204 || status === 304
  if (!isBodyless) response.setHeader('Content-Length', body.byteLength)
  keepHeadInOrder(response)
  // The head is written by itself, as the first answer's was: together with a text, Node would encode
  // a header that is not ASCII otherwise.
  response.writeHead(status)
  // With `rejectNonStandardBodyWrites`, Node throws at an empty body, too.
  response.end(isBodyless ? undefined : body)
}
