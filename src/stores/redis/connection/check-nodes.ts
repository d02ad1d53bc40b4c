import { ServiceAuthError } from '../../../base/decision/service-auth-error.js'
import { type RedisCall, type RedisNode, type Script, script } from './client.js'
import type { Connection } from './redis-connection.js'

/** The properties of the store that a check depends on. */
export interface NodeCheckOptions {
  readonly connection: Connection
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
export async function readInfo(
  node: RedisNode,
  options: NodeCheckOptions,
): Promise<string | undefined> {
  try {
    return String(await answerOf(nodeName(node), options, node.command('INFO')))
  } catch (error) {
    if (error instanceof ServiceAuthError && error.code === 'unfit') return undefined
    throw error
  }
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
    const state = await answerOf(name, options, node.command('CLUSTER', 'INFO'))
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

/**
 * Makes a script that runs commands, given as Lua tables, and replies with their errors, as pairs of command
 * and message.
 */
export const tryScript = (commands: string): Script =>
  script(`
local refused = {}
for _, call in ipairs({${commands}}) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err then refused[#refused + 1] = { call[1], reply.err } end
end
return refused
`)

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
  const right = await answerOf(name, options, missingRight(connection, call))
  if (right !== undefined) throw unfit(`${name} does not let the user ${right}`)
  if (sendsWait) await answerOf(name, options, node.command('WAIT', '0', '1'))
}

/** Permission errors of Redis outside and inside scripts, from version 6.2. */
const NO_PERMISSION = /^NOPERM|no permissions|can't run this command|can't access at least one/i

/**
 * Returns the command of a `tryScript` that the user may not run; `undefined` if there is none. Sends the script by
 * source and by digest, because a user may be denied either.
 *
 * @throws NotConfirmed
 */
export async function missingRight(
  connection: Connection,
  call: RedisCall,
): Promise<string | undefined> {
  await connection.run({ ...call, sendsSource: true })
  const pairs = (await connection.run(call)) as unknown[][]
  const refused = pairs.find(([, text]) => NO_PERMISSION.test(String(text)))
  return refused && `run ${refused[0]} in scripts`
}

/** Returns what an error says that the user may not do; `undefined` if it is another error. */
export function refusedRight(message: string, prefix: string): string | undefined {
  if (!message.startsWith('NOPERM')) return undefined
  const [, command] = /run the '([^']+)' command/.exec(message) ?? []
  if (command !== undefined) return `run ${command.replace('|', ' ').toUpperCase()}`
  return `access keys that begin with ${JSON.stringify(prefix)}`
}

async function answerOf<T>(
  name: string,
  { prefix }: NodeCheckOptions,
  reply: Promise<T>,
): Promise<T> {
  try {
    return await reply
  } catch (error) {
    const { message } = error as Error
    const right = refusedRight(message, prefix)
    if (right !== undefined) throw unfit(`${name} does not let the user ${right}`)
    throw unavailable(`${name} is unreachable: ${message}`)
  }
}

const unavailable = (message: string): ServiceAuthError =>
  new ServiceAuthError('unavailable', message)

const unfit = (message: string): ServiceAuthError => new ServiceAuthError('unfit', message)

const nodeName = ({ address, isBehindSentinel }: RedisNode): string =>
  isBehindSentinel ? `the primary that sentinels call ${address}` : `Redis at ${address}`
