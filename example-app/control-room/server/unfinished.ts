import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import * as z from 'zod'
import { readInput } from '../input/read-input.js'
import { ActionError } from '../ports.js'

/** What has come of an action so far: its result, or what to ask with for it. */
export type Progress = { readonly result: unknown } | { readonly ticket: string }

/** Actions that take longer than a request may. */
export interface Unfinished {
  /** Rejects as the action does, if it does so soon. */
  begin(action: Promise<unknown>): Promise<Progress>
  /**
   * Asks again; the input comes unchecked. Rejects as the action does, and with an `ActionError` when
   * nothing is known of it.
   */
  ask(input: unknown): Promise<Progress>
}

/**
 * How long a request waits. A browser has six connections for all pages of a room: if calls kept them
 * while their writes are held, the button that lets them go would have no effect.
 */
const WAIT_MS = 1000

/** How long a result is kept for a page that is asleep. */
const KEPT_MS = 5 * 60_000

const question = z.strictObject({ ticket: z.string() })

export function createUnfinished(): Unfinished {
  const actions = new Map<string, Promise<unknown>>()

  async function keep(action: Promise<unknown>, ticket: string): Promise<void> {
    actions.set(ticket, action)
    await Promise.allSettled([action])
    setTimeout(() => actions.delete(ticket), KEPT_MS).unref()
  }

  return {
    async begin(action) {
      const progress = await resultSoon(action)
      if (progress) return progress
      const ticket = randomUUID()
      void keep(action, ticket)
      return { ticket }
    },
    async ask(input) {
      const { ticket } = readInput(question, input)
      const action = actions.get(ticket)
      if (action === undefined) throw new ActionError('The room knows no more what came of this')
      return (await resultSoon(action)) ?? { ticket }
    },
  }
}

async function resultSoon(action: Promise<unknown>): Promise<{ result: unknown } | undefined> {
  const waiting = new AbortController()
  const limit = delay(WAIT_MS, undefined, { signal: waiting.signal }).catch(() => undefined)
  try {
    return await Promise.race([action.then((result) => ({ result })), limit])
  } finally {
    waiting.abort()
  }
}
