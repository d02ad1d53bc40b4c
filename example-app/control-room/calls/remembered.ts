import { randomUUID } from 'node:crypto'
import { ActionError } from '../ports.js'
import type { CallOrder } from '../protocol.js'
import type { Minted } from './tokens.js'

/** What earlier calls have left for later ones. */
export interface Remembered {
  /** @throws {ActionError} when no call of this caller has been sent */
  tokenOf(caller: string): Minted
  keepToken(caller: string, token: Minted): void
  /**
   * The key of a POST, or none.
   * @throws {ActionError} when the key of the last one is wanted and there was none
   */
  keyFor(order: Pick<CallOrder, 'method' | 'idempotencyKey'>): string | undefined
}

/** Visitors may make up callers. */
const MAX_CALLERS = 100
/** As many as may be open. */
const MAX_PAGES = 32

/** What each page has left; that of the page that was silent for longest is forgotten. */
export function createRememberedByPage(): (page: string | undefined) => Remembered {
  const pages = new Map<string | undefined, Remembered>()
  return (page) => {
    const remembered = pages.get(page) ?? createRemembered()
    pages.delete(page)
    pages.set(page, remembered)
    const [oldest] = pages.keys()
    if (pages.size > MAX_PAGES) pages.delete(oldest)
    return remembered
  }
}

function createRemembered(): Remembered {
  const tokens = new Map<string, Minted>()
  let lastKey: string | undefined
  return {
    tokenOf(caller) {
      const token = tokens.get(caller)
      if (token === undefined) {
        throw new ActionError(`${caller} has sent no token yet: send a call with a new one first`)
      }
      return token
    },
    keepToken(caller, token) {
      tokens.delete(caller)
      tokens.set(caller, token)
      const [oldest] = tokens.keys()
      if (tokens.size > MAX_CALLERS && oldest !== undefined) tokens.delete(oldest)
    },
    keyFor({ method, idempotencyKey }) {
      if (method === 'GET' || idempotencyKey === 'none') return undefined
      if (idempotencyKey === 'new') lastKey = randomUUID()
      if (lastKey === undefined) {
        throw new ActionError('No POST had a key yet: send one with a new key first')
      }
      return lastKey
    },
  }
}
