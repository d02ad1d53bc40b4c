import type { Response } from 'express'
import type { StoredResult } from '../idempotency/result.js'

/** Answers with a kept result: raw octets, to which Express adds nothing. */
export function replayResult(response: Response, { status, headers, body }: StoredResult): void {
  response.statusCode = status
  for (const [name] of headers) response.removeHeader(name)
  for (const [name, value] of headers) response.appendHeader(name, value)
  response.setHeader('Idempotent-Replayed', 'true')
  response.setHeader('Cache-Control', 'no-store')
  const isBodyless = response.req.method === 'HEAD' || status === 204 || status === 304
  if (!isBodyless) response.setHeader('Content-Length', body.byteLength)
  response.end(body)
}
