import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import type { RedisNode } from '../clients/redis-client.js'
import {
  errorText,
  retryUntilDeadline,
  type Script,
  startRedisCall,
  untilDeadline,
} from './redis-call.js'
import type { Connection } from './redis-connection.js'
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
 * Checks every node that accepts writes. Persistence is the operator's choice and is not checked.
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
  return (await Promise.all(masters.map(check))).flat()
}

/** Returns the reply to `INFO`; `undefined` if the user may not run it. */
export function readInfo(node: RedisNode, options: NodeCheckOptions): Promise<string | undefined> {
  return runOn(node, options, async () => String(await node.command('INFO'))).catch((error) => {
    if (error instanceof ServiceAuthError && error.code === 'unfit') return undefined
    throw error
  })
}

/** Checks one node as `checkMasters` does, with its reply to `INFO`. */
export async function checkNode(
  node: RedisNode,
  options: NodeCheckOptions,
  info: string | undefined,
): Promise<readonly string[]> {
  const name = nodeName(node)
  const warnings = checkInfo(name, info)
  if (options.connection.cluster || info?.includes('cluster_enabled:1')) {
    const state = await runOn(node, options, () => node.command('CLUSTER', 'INFO'))
    if (!String(state).includes('cluster_state:ok')) {
      throw unavailable(`${name} says that its cluster is down`)
    }
  }
  await checkPermissions(node, options)
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

async function checkPermissions(node: RedisNode, options: NodeCheckOptions): Promise<void> {
  const { connection, prefix, sendsWait } = options
  const key = keyOn(node, connection, prefix)
  // The prefix has a hash tag of another node, or this node has no slots: the store never writes to it.
  if (key === undefined) return
  const call = { script: TRY_COMMANDS, key, args: [] }
  // The store sends scripts by source and by digest, and a user may be denied either.
  await runOn(node, options, () => connection.link.sendSource(call))
  const refused = await runOn(node, options, () => connection.link.sendDigest(call))
  const missing = missingPermission(refused)
  if (missing !== undefined) throw unfit(`${nodeName(node)} does not let the user ${missing}`)
  if (sendsWait) await runOn(node, options, () => node.command('WAIT', '0', '1'))
}

const MAX_CANDIDATES = 20_000

/** Returns a key with the prefix that the node serves; `undefined` if none is found. */
function keyOn(
  { address }: RedisNode,
  { cluster }: Connection,
  prefix: string,
): string | undefined {
  const base = `${prefix}t:check`
  if (cluster === undefined) return base
  for (let count = 0; count < MAX_CANDIDATES; count++) {
    const key = `${base}-${count}`
    if (cluster.addressOf(key) === address) return key
  }
  return undefined
}

async function runOn<T>(
  node: RedisNode,
  options: NodeCheckOptions,
  send: () => Promise<T>,
): Promise<T> {
  const { connection, timeoutMs, prefix } = options
  const state = startRedisCall(timeoutMs)
  try {
    return await connection.watch(retryUntilDeadline(state, () => untilDeadline(send(), state)))
  } catch (error) {
    const { message } = error as Error
    const right = refusedRight(message, prefix)
    if (right !== undefined) throw unfit(`${nodeName(node)} does not let the user ${right}`)
    throw unavailable(`${nodeName(node)} is unreachable: ${errorText(error as Error)}`)
  }
}

const unavailable = (message: string): ServiceAuthError =>
  new ServiceAuthError('unavailable', message)

const unfit = (message: string): ServiceAuthError => new ServiceAuthError('unfit', message)

const nodeName = ({ address, isBehindSentinel }: RedisNode): string =>
  isBehindSentinel ? `the primary that sentinels call ${address}` : `Redis at ${address}`
