import type { Response } from 'express'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { encodeResult } from '../../idempotency/buffered-response/stored-result.js'
import { sendRefusal } from '../../middleware/refusal-table.js'
import { REFUSALS } from './endpoint-refusals.js'
import type { Verdict } from './endpoint-result.js'

const OK_TYPE = 'application/json; charset=utf-8'

const okBody = (userId: string): Buffer => Buffer.from(JSON.stringify({ status: 'OK', userId }))

/**
 * Sends the response.
 *
 * @throws ServiceAuthError if a response has begun already.
 */
export function answer(response: Response, verdict: Verdict): void {
  if (verdict.type === 'accepted') {
    sendOk(response, verdict.userId)
    return
  }
  const seconds = verdict.type === 'refused' ? verdict.retryAfterSeconds : undefined
  sendRefusal(response, REFUSALS[verdict.reason], seconds)
}

function sendOk(response: Response, userId: string): void {
  if (response.headersSent) throw wrongWiring('a response had begun before the user was migrated')
  const body = okBody(userId)
  response.statusCode = 200
  response.setHeader('Content-Type', OK_TYPE)
  response.setHeader('Content-Length', body.byteLength)
  response.setHeader('Cache-Control', 'no-store')
  response.end(body)
}

/** Returns the answer in the form that stores keep. */
export const keptAnswer = (userId: string): Buffer =>
  encodeResult({ status: 200, headers: [['Content-Type', OK_TYPE]], body: okBody(userId) })
