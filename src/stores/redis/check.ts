import type { Redis } from 'ioredis'
import { within } from './connection.js'

/**
 * Looks whether a node can be trusted to keep what it is given; persistence is its operator's choice.
 *
 * @throws Error naming the fault.
 */
export async function checkNode(node: Redis, timeoutMs: number): Promise<void> {
  const info = await within(node.info(), performance.now() + timeoutMs, false)
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  if (field('role') === 'slave') throw new Error('Redis is a read-only replica')
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    throw new Error(`Redis may evict keys: maxmemory-policy is ${policy}, and must be noeviction`)
  }
}
