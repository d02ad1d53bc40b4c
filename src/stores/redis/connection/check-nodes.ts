import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import type { RedisNode } from './client.js'
import {
  type CallState,
  errorText,
  retryUntilDeadline,
  type Script,
  startRedisCall,
  untilDeadline,
} from './redis-call.js'
import { type Connection, sendScript } from './redis-connection.js'
import { missingPermission, refusedRight, tryScript } from './rights.js'

/** The properties of the store that a check depends on. */
export interface NodeCheckOptions {
  readonly connection: Connection
  /** Milliseconds for each command. */
  readonly timeoutMs: number
  readonly prefix: string
  readonly sendsWait: boolean
}

/**
 * Checks the settings of every node that accepts writes, and the user's rights on one. Persistence is the operator's
 * choice and is not checked.
 *
 * @returns warnings
 * @throws ServiceAuthError `unavailable` if a node cannot be reached or is not ready, `unfit` if it
 * would lose reservations, accepts no writes, or denies the user a permission that the store needs.
 */
export async function checkMasters(options: NodeCheckOptions): Promise<readonly string[]> {
  const masters = await options.connection.masters().catch((error: Error) => {
    throw unavailable(error.message)
  })
  const check = async (node: RedisNode): Promise<readonly string[]> =>
    checkNode(node, options, await readInfo(node, options))
  const warnings = await Promise.all(masters.map(check))
  const [first] = masters
  if (first !== undefined) await checkPermissions(first, options)
  return warnings.flat()
}

/** Returns the reply to `INFO`; `undefined` if the user may not run it. */
export function readInfo(node: RedisNode, options: NodeCheckOptions): Promise<string | undefined> {
  const name = nodeName(node)
  return runOn(name, options, async () => String(await node.command('INFO'))).catch((error) => {
    if (error instanceof ServiceAuthError && error.code === 'unfit') return undefined
    throw error
  })
}

/** Checks the settings of one node as `checkMasters` does, with its reply to `INFO`. */
export async function checkNode(
  node: RedisNode,
  options: NodeCheckOptions,
  info: string | undefined,
): Promise<readonly string[]> {
  const name = nodeName(node)
  const warnings = checkInfo(name, info)
  if (options.connection.clients.isCluster || info?.includes('cluster_enabled:1')) {
    const state = await runOn(name, options, () => node.command('CLUSTER', 'INFO'))
    if (!String(state).includes('cluster_state:ok')) {
      throw unavailable(`${name} says that its cluster is down`)
    }
  }
  return warnings
}

/** Returns a warning if `INFO`, or a field of it, is missing: some managed services leave fields out. */
function checkInfo(name: string, info: string | undefined): readonly string[] {
  if (info === undefined) {
    return [
      `${name} does not let the user run INFO: role, maxmemory-policy and loading are not checked`,
    ]
  }
  const field = (key: string): string | undefined =>
    new RegExp(`^${key}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  if (field('role') === 'slave') throw unfit(`${name} is a read-only replica`)
  const policy = field('maxmemory_policy')
  if (policy !== undefined && policy !== 'noeviction') {
    throw unfit(`${name} may evict keys: maxmemory-policy is ${policy}, and must be noeviction`)
  }
  if (field('loading') === '1') throw unavailable(`${name} is still loading its data`)
  const missing = ['role', 'maxmemory_policy', 'loading'].filter((key) => field(key) === undefined)
  if (missing.length === 0) return []
  const names = missing.map((key) => key.replace('_', '-')).join(', ')
  return [`${name} leaves ${names} out of INFO: not checked; maxmemory-policy must be noeviction`]
}

/** Runs each command that the store's scripts use, on a key that expires immediately. */
export const TRY_COMMANDS: Script = tryScript(`
  { 'SET', KEYS[1], '', 'PX', 1 }, { 'GET', KEYS[1] }, { 'PTTL', KEYS[1] },
  { 'PEXPIRE', KEYS[1], 1 }, { 'DEL', KEYS[1] }, { 'TIME' },
`)

/** In a cluster, the rights are those on the node of the key. */
export async function checkPermissions(node: RedisNode, options: NodeCheckOptions): Promise<void> {
  const { connection, prefix, sendsWait } = options
  const name = connection.clients.isCluster ? 'the cluster' : nodeName(node)
  const call = { script: TRY_COMMANDS, keys: [`${prefix}t:check`], args: [] }
  // The store sends scripts by source and by digest, and a user may be denied either.
  const source = { ...call, sendsSource: true }
  await runOn(name, options, (state) => sendScript(connection.link, source, state))
  const refused = await runOn(name, options, (state) => sendScript(connection.link, call, state))
  const missing = missingPermission(refused)
  if (missing !== undefined) throw unfit(`${name} does not let the user ${missing}`)
  if (sendsWait) await runOn(name, options, () => node.command('WAIT', '0', '1'))
}

async function runOn<T>(
  name: string,
  { connection, timeoutMs, prefix }: NodeCheckOptions,
  send: (state: CallState) => Promise<T>,
): Promise<T> {
  const state = startRedisCall(timeoutMs)
  try {
    const reply = retryUntilDeadline(state, () => untilDeadline(send(state), state))
    return await connection.track(reply)
  } catch (error) {
    const { message } = error as Error
    const right = refusedRight(message, prefix)
    if (right !== undefined) throw unfit(`${name} does not let the user ${right}`)
    throw unavailable(`${name} is unreachable: ${errorText(error as Error)}`)
  }
}

const unavailable = (message: string): ServiceAuthError =>
  new ServiceAuthError('unavailable', message)

const unfit = (message: string): ServiceAuthError => new ServiceAuthError('unfit', message)

const nodeName = ({ address, isBehindSentinel }: RedisNode): string =>
  isBehindSentinel ? `the primary that sentinels call ${address}` : `Redis at ${address}`
