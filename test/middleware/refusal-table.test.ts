import type { Response } from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Schemes } from '../../src/base/decision/problem.js'
import type { Reason } from '../../src/base/decision/reason.js'
import { ServiceAuthError } from '../../src/base/decision/service-auth-error.js'
import {
  decisionResult,
  refusalOf,
  refuse,
  sendRefusal,
} from '../../src/middleware/refusal-table.js'
import { rawRequest } from '../support/network/raw-exchange.js'
import {
  FORBIDDEN,
  INVALID_TOKEN,
  NO_TOKEN,
  UNAVAILABLE,
  withoutBody,
} from '../support/receiver/refusal-bytes.js'
import { serve } from '../support/receiver/serve.js'

/** What the contract's table says of each reason; a new one does not compile without its row. */
const ROWS: Record<Reason, string> = {
  credentials_missing: NO_TOKEN,
  credentials_ambiguous: INVALID_TOKEN,
  session_token_malformed: INVALID_TOKEN,
  identity_missing: INVALID_TOKEN,
  authorization_repeated: INVALID_TOKEN,
  authorization_malformed: INVALID_TOKEN,
  token_too_long: INVALID_TOKEN,
  token_malformed: INVALID_TOKEN,
  algorithm_not_allowed: INVALID_TOKEN,
  key_id_invalid: INVALID_TOKEN,
  header_parameter_forbidden: INVALID_TOKEN,
  token_type_invalid: INVALID_TOKEN,
  id_token: INVALID_TOKEN,
  confirmation_unsupported: INVALID_TOKEN,
  confirmation_missing: INVALID_TOKEN,
  certificate_missing: INVALID_TOKEN,
  certificate_mismatch: INVALID_TOKEN,
  proof_missing: INVALID_TOKEN,
  proof_invalid: INVALID_TOKEN,
  static_key_refused: INVALID_TOKEN,
  key_denied: INVALID_TOKEN,
  key_unknown: INVALID_TOKEN,
  signature_invalid: INVALID_TOKEN,
  claim_missing: INVALID_TOKEN,
  claim_invalid: INVALID_TOKEN,
  token_expired: INVALID_TOKEN,
  token_not_yet_valid: INVALID_TOKEN,
  token_lifetime_too_long: INVALID_TOKEN,
  token_denied: INVALID_TOKEN,
  token_issued_too_early: INVALID_TOKEN,
  token_id_missing: INVALID_TOKEN,
  token_replayed: INVALID_TOKEN,
  caller_denied: FORBIDDEN,
  caller_not_approved: FORBIDDEN,
  permission_missing: FORBIDDEN,
  key_not_looked_up: UNAVAILABLE,
  key_set_unavailable: UNAVAILABLE,
  denylist_unavailable: UNAVAILABLE,
  store_unavailable: UNAVAILABLE,
}

const rows = Object.entries(ROWS) as [Reason, string][]

async function answerWith(
  reason: Reason,
  method: string,
  schemes: Schemes = 'Bearer',
): Promise<string> {
  // With the option a body to HEAD throws, were it never sent.
  const options = { rejectNonStandardBodyWrites: true }
  const { port, close } = await serve((_request, response) => {
    response.setHeader('X-Powered-By', 'Express')
    sendRefusal(response as Response, refusalOf(reason, schemes))
  }, options)
  onTestFinished(close)
  return rawRequest(port, { method })
}

describe('a refusal', () => {
  it.each(rows)('for %s is that of its row, and has no body for HEAD', async (reason, bytes) => {
    expect(await answerWith(reason, 'GET')).toBe(bytes)
    expect(await answerWith(reason, 'HEAD')).toBe(withoutBody(bytes))
    const outcome = bytes === UNAVAILABLE ? 'undecided' : 'refused'
    const status = Number(bytes.slice(9, 12))
    expect(decisionResult(reason)).toMatchObject({ reason, status, outcome })
  })

  it('is sent when earlier middlewares return nothing, or add a header at the end', async () => {
    const { port, close } = await serve((_request, response) => {
      const { writeHead, end } = response
      response.writeHead = ((...args: [number]) => {
        Reflect.apply(writeHead, response, args)
      }) as typeof writeHead
      response.end = ((...args: []) => {
        response.setHeader('Connection', 'close')
        Reflect.apply(end, response, args)
      }) as typeof end
      response.setHeader('X-Powered-By', 'Express')
      sendRefusal(response as Response, refusalOf('token_expired', 'Bearer'))
    })
    onTestFinished(close)
    expect(await rawRequest(port, { method: 'GET' })).toBe(INVALID_TOKEN)
  })

  it('is an error of our own once a response has begun', () => {
    const response = { headersSent: true } as Response
    expect(() => refuse(response, 'store_unavailable')).toThrow(ServiceAuthError)
  })
})
