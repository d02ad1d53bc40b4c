import type { Redis } from 'ioredis'
import { ServiceAuthError } from '../../decision/fault.js'
import { attemptFor, faultText, persist, within } from './attempt.js'
import type { Connection } from './connection.js'

/**
 * Looks whether every node that takes writes can be trusted to keep what it is given; persistence is
 * its operator's choice.
 *
 * @throws ServiceAuthError `unavailable` when a node cannot be asked or serves nobody at present,
 * `unfit` when it would lose reservations or take none.
 */
export async function checkMasters(connection: Connection, timeoutMs: number): Promise<void> {
  const masters = await connection.masters().catch((error: Error) => {
    throw unavailable(error.message)
  })
  await Promise.all(masters.map((node) => checkNode(node, { connection, timeoutMs })))
}

/** By what a node is asked, and for how long at most. */
export interface Asking {
  readonly connection: Pick<Connection, 'watch'>
  readonly timeoutMs: number
}

/** The same of one node. @throws ServiceAuthError as `checkMasters`. */
export async function checkNode(node: Redis, asking: Asking): Promise<void> {
  const name = nameOf(node)
  const info = await asked(node, asking, () => node.info())
  const field = (key: string): string | undefined =>
    new RegExp(`^${key}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  if (field('role') === 'slave') throw unfit(`${name} is a read-only replica`)
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    throw unfit(`${name} may evict keys: maxmemory-policy is ${policy}, and must be noeviction`)
  }
  if (field('loading') === '1') throw unavailable(`${name} is still loading its data`)
  if (field('cluster_enabled') !== '1') return
  const state = await asked(node, asking, () => node.cluster('INFO'))
  if (!String(state).includes('cluster_state:ok')) {
    throw unavailable(`${name} says that its cluster is down`)
  }
}

async function asked<T>(node: Redis, asking: Asking, ask: () => Promise<T>): Promise<T> {
  const { connection, timeoutMs } = asking
  const attempt = attemptFor(timeoutMs)
  try {
    return await connection.watch(persist(attempt, () => within(ask(), attempt)))
  } catch (error) {
    throw unavailable(`${nameOf(node)} is out of reach: ${faultText(error as Error)}`)
  }
}

const unavailable = (message: string): ServiceAuthError =>
  new ServiceAuthError('unavailable', message)

const unfit = (message: string): ServiceAuthError => new ServiceAuthError('unfit', message)

function nameOf({ options }: Redis): string {
  if (options.sentinels) return `the primary that sentinels call ${options.name}`
  return `Redis at ${options.path ?? `${options.host}:${options.port}`}`
}
