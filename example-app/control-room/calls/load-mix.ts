import { randomUUID } from 'node:crypto'
import type { CoreTokenSource } from 'express-service-auth/client'
import { type Composed, compose } from './compose.js'
import { type Mint, sourceOf } from './tokens.js'

/** A call of the background. */
export interface LoadCall {
  readonly composed: Composed
  readonly authorization: string
  /** Takes in the status that it got. */
  answered(status: number): void
}

/** The kinds of calls of the background, in the order in which they come round. */
const ROUND = [
  'read',
  'read',
  'replay',
  'read',
  'tampered',
  'read',
  'read',
  'forbidden',
  'read',
  'read',
] as const

type Kind = (typeof ROUND)[number]

const UNAUTHORIZED = 401

export interface LoadMix {
  next(): Promise<LoadCall>
  close(): void
}

/**
 * Accepted, replayed and refused calls by turns. Writes all have one key: they add one order, and get
 * its answer from then on.
 */
export function createLoadMix(mint: Mint): LoadMix {
  const key = randomUUID()
  const claims = (caller: string, permission: string) => {
    return { caller, audience: 'orders', permissions: [permission] }
  }
  const reads = sourceOf(mint, claims('billing', 'orders:read'))
  const reports = sourceOf(mint, claims('reporting', 'orders:write'))
  // Each write needs a token of its own.
  const writes = sourceOf(mint, claims('billing', 'orders:write'), { singleUse: true })
  const sources: Readonly<Record<Kind, CoreTokenSource>> = {
    read: reads,
    tampered: reads,
    replay: writes,
    forbidden: reports,
  }
  let turn = 0
  let refused: string | undefined
  return {
    async next() {
      const kind = ROUND[turn % ROUND.length] as Kind
      turn += 1
      const token = await sources[kind].token(refused === undefined ? {} : { after: refused })
      const isWrite = kind === 'replay' || kind === 'forbidden'
      const order = { method: isWrite ? 'POST' : 'GET', body: 'usual' } as const
      const sent = kind === 'tampered' ? tampered(token) : token
      return {
        composed: compose(order, key),
        authorization: `Bearer ${sent}`,
        answered(status) {
          // Its key or the token itself was shut out: reads go on with another one.
          if (kind === 'read' && status === UNAUTHORIZED) refused = token
        },
      }
    },
    close() {
      for (const source of [reads, reports, writes]) source.close()
    },
  }
}

/** The same token with another first letter of its signature. */
function tampered(token: string): string {
  const at = token.lastIndexOf('.') + 1
  const letter = token[at] === 'A' ? 'B' : 'A'
  return token.slice(0, at) + letter + token.slice(at + 1)
}
