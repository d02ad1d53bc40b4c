import type { Redis } from 'ioredis'
import { attemptFor, within } from './attempt.js'

/**
 * Looks whether a node can be trusted to keep what it is given; persistence is its operator's choice.
 *
 * @throws Error naming the fault.
 */
export async function checkNode(node: Redis, timeoutMs: number): Promise<void> {
  const info = await asked(node, node.info(), timeoutMs)
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  if (field('role') === 'slave') throw new Error(`${nameOf(node)} is a read-only replica`)
  if (field('loading') === '1') throw new Error(`${nameOf(node)} is still loading its data`)
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    throw new Error(
      `${nameOf(node)} may evict keys: maxmemory-policy is ${policy}, and must be noeviction`,
    )
  }
  if (field('cluster_enabled') === '1') await checkCluster(node, timeoutMs)
}

async function checkCluster(node: Redis, timeoutMs: number): Promise<void> {
  const state = await asked(node, node.cluster('INFO'), timeoutMs)
  if (!String(state).includes('cluster_state:ok')) {
    throw new Error(`${nameOf(node)} says that its cluster is down`)
  }
}

async function asked<T>(node: Redis, reply: Promise<T>, timeoutMs: number): Promise<T> {
  try {
    return await within(reply, attemptFor(timeoutMs))
  } catch (error) {
    // Without its cause: what ioredis attaches to an error may hold what was sent.
    throw new Error(`${nameOf(node)} is out of reach: ${(error as Error).message}`)
  }
}

const nameOf = ({ options }: Redis): string =>
  `Redis at ${options.path ?? `${options.host}:${options.port}`}`
