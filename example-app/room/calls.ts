import { randomUUID } from 'node:crypto'
import { createTestIssuer, hostileTokens } from 'express-service-auth/testing'
import { z } from 'zod'
import { POLICY } from '../orders/policy.js'
import type { Stage } from '../story/stage.js'
import { type Check, checksOf } from './checks.js'
import { CALL_HEADER, endOf, type Verdict, type Watch } from './watch.js'

/** What the page asks to be sent. */
export const ORDER = z.strictObject({
  caller: z.string().max(64),
  route: z.enum(['read', 'write', 'track']),
  permissions: z.array(z.string().max(64)).max(8),
  key: z.string().max(64),
  /** The name of a hostile token of the kit; without it, a genuine one. */
  hostile: z.string().max(128).optional(),
})
export type CallOrder = z.output<typeof ORDER>

export interface CallResult {
  /** The request as text; of a genuine token only its beginning is shown. */
  readonly request: string
  /** Header and payload of the token, where they can be read. */
  readonly token: { readonly header: string; readonly payload: string }
  readonly expected?: string
  readonly caller: { readonly head: string; readonly body: string } | { readonly failure: string }
  readonly operator: { readonly verdicts: readonly Verdict[]; readonly checks: readonly Check[] }
}

const ROUTES = {
  read: ['GET', '/orders/o-1'],
  write: ['POST', '/orders'],
  track: ['GET', '/orders/o-1/tracking'],
} as const
const BODY = JSON.stringify({ item: 'lamp', quantity: 1 })
const SHOWN_CHARACTERS = 40
/** Hostile tokens are made for the current time, and expire after five minutes at the latest. */
const MAX_AGE_MS = 60_000

/**
 * Sends calls to orders. Hostile tokens are those of a test issuer, and go to an instance of orders that trusts it: so
 * each of them has one fault alone.
 */
export async function openCalls(stage: Stage, watch: Watch) {
  const issuer = await createTestIssuer()
  const { issuer: iss, jwksUri, callers } = issuer.policy({ callers: POLICY.callers })
  const trusting = await stage.startOrders({ issuer: iss, jwksUri, callers })

  let kit = { madeAt: Date.now(), tokens: hostileTokens(issuer) }

  function hostileToken(name: string) {
    if (Date.now() - kit.madeAt > MAX_AGE_MS) {
      kit = { madeAt: Date.now(), tokens: hostileTokens(issuer) }
    }
    const found = kit.tokens.find((token) => token.name === name)
    if (found === undefined) throw new TypeError('there is no such hostile token')
    return found
  }

  async function credentialFor({ caller, permissions, hostile }: CallOrder) {
    if (hostile === undefined) {
      const token = await stage.tokenOf(caller, permissions)
      return { url: stage.ordersUrl, authorization: `Bearer ${token}`, expected: undefined }
    }
    const { authorization, expect, why } = hostileToken(hostile)
    return { url: trusting.url, authorization, expected: `${expect}: ${why}` }
  }

  async function send(order: CallOrder): Promise<CallResult> {
    const [method, path] = ROUTES[order.route]
    const { url, authorization, expected } = await credentialFor(order)
    const call = randomUUID()
    const isWrite = method === 'POST'
    const headers: Record<string, string> = {
      authorization,
      ...(isWrite && { 'content-type': 'application/json', 'idempotency-key': order.key }),
    }
    if (order.key === '') delete headers['idempotency-key']
    const request = { method, headers: { ...headers, [CALL_HEADER]: call } }
    const answer = await fetch(`${url}${path}`, {
      ...request,
      ...(isWrite && { body: BODY }),
    }).then(
      async (response) => ({
        status: response.status,
        head: headOf(response),
        body: await response.text(),
      }),
      (error: Error) => ({ status: 599, failure: String(error.cause ?? error) }),
    )
    const verdicts = watch.verdictsOf(call)
    const isAnswered = answer.status < 500 && endOf(verdicts) === undefined
    const { status: _, ...caller } = answer
    return {
      request: requestText(`${method} ${path}`, headers, isWrite ? BODY : ''),
      token: tokenParts(authorization),
      ...(expected !== undefined && { expected }),
      caller,
      operator: { verdicts, checks: checksOf(verdicts, { isWrite, isAnswered }) },
    }
  }

  return {
    hostile: kit.tokens.map(({ name }) => name),
    send,
    async close() {
      await trusting.close()
      await issuer.close()
    },
  }
}

function headOf({ status, statusText, headers }: Response): string {
  const lines = [...headers].map(([name, value]) => `${name}: ${value}`)
  return [`${status} ${statusText}`, ...lines].join('\n')
}

function requestText(line: string, headers: Record<string, string>, body: string): string {
  const lines = Object.entries(headers).map(([name, value]) => {
    const isLong = name === 'authorization' && value.length > SHOWN_CHARACTERS
    return `${name}: ${isLong ? `${value.slice(0, SHOWN_CHARACTERS)}…` : value}`
  })
  return [line, ...lines, '', body].join('\n').trimEnd()
}

/** What can be read of a token, without its signature. */
function tokenParts(authorization: string): CallResult['token'] {
  const [header = '', payload = ''] = authorization
    .replace(/^\S+ /, '')
    .split('.')
    .map((segment) => {
      const text = Buffer.from(segment, 'base64url').toString()
      try {
        return JSON.stringify(JSON.parse(text), null, 2)
      } catch {
        return segment
      }
    })
  return { header, payload }
}
