import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import {
  checkNode,
  checkPermissions,
  type NodeCheckOptions,
  readInfo,
} from '../../stores/redis/connection/check-nodes.js'
import type { RedisNode } from '../../stores/redis/connection/client.js'
import { ownClients } from '../../stores/redis/connection/own-clients.js'
import { openConnection } from '../../stores/redis/connection/redis-connection.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { type Report, unreachableError } from '../frame/command-failure.js'
import { columns, INDENT } from '../output/columns.js'
import {
  type Found,
  fault,
  findingLines,
  findingsOf,
  hasFault,
  warning,
} from '../output/findings.js'
import { REDIS_OPTIONS, type RedisAccess, withRedis } from '../redis/redis-client.js'
import { findingsOnNode, type NodeReplies } from './node-findings.js'

export const checkStore: Command = {
  name: 'check-store',
  summary: 'Checks whether Redis is fit to store the data of the package',
  usage: ['[--redis FILE] [--timeout TIME]'],
  options: { Options: REDIS_OPTIONS },
  exitCodes: { 1: 'a node is unfit' },
  run: (context: CommandContext) => withRedis(context, checkAll),
}

/** A node that accepts writes, with its findings. */
interface CheckedNode {
  readonly address: string
  readonly found: readonly Found[]
  /** Why the node could not be queried. */
  readonly outage?: string
}

async function checkAll({ client, prefix, timeoutMs }: RedisAccess): Promise<CommandResult> {
  const connection = openConnection(ownClients('check-store', client), timeoutMs)
  try {
    const masters = await connection.masters().catch((error: Error) => {
      throw unreachableError('store_unavailable', error.message, reportNodes([]))
    })
    const nodes = await Promise.all(
      masters.map((node, index) => {
        const options = { connection, prefix, sendsWait: false }
        return checkOne(node, { ...options, triesScripts: index === 0 })
      }),
    )
    const report = reportNodes(nodes)
    const outage = nodes.find((node) => node.outage !== undefined)?.outage
    if (outage !== undefined) throw unreachableError('store_unavailable', outage, report)
    return { ...report, exitCode: nodes.some(({ found }) => hasFault(found)) ? 1 : 0 }
  } finally {
    connection.close()
  }
}

interface OneCheck extends NodeCheckOptions {
  /** Whether to check the user's rights with it: one node is enough. */
  readonly triesScripts: boolean
}

async function checkOne(node: RedisNode, options: OneCheck): Promise<CheckedNode> {
  const address = node.isBehindSentinel ? `${node.address} via Sentinel` : node.address
  try {
    const info = await readInfo(node, options)
    const checked = await checkOwn(node, options, info)
    return { address, found: [...checked, ...findingsOnNode(await queryNode(node, info ?? ''))] }
  } catch (error) {
    if (error instanceof TypeError) throw error
    const { message } = error as Error
    const isTold = error instanceof ServiceAuthError
    const outage = isTold ? message : `Redis at ${address} is unreachable: ${message}`
    return { address, found: [], outage }
  }
}

/**
 * What the store's own `check()` says of the node.
 *
 * @throws ServiceAuthError `unavailable`
 */
async function checkOwn(
  node: RedisNode,
  options: OneCheck,
  info: string | undefined,
): Promise<Found[]> {
  try {
    const warnings = await checkNode(node, options, info)
    if (options.triesScripts) await checkPermissions(node, options)
    return warnings.map((message) => warning('not_checked', message))
  } catch (error) {
    if (!(error instanceof ServiceAuthError) || error.code !== 'unfit') throw error
    return [fault('unfit', error.message)]
  }
}

function reportNodes(nodes: readonly CheckedNode[]): Report {
  const lines = nodes.flatMap((node, index) => [
    ...(index === 0 ? [] : ['']),
    node.address,
    ...(node.outage === undefined ? [] : [`${INDENT}unreachable`]),
    ...columns(
      findingsOf(node.found, 'facts').map(({ code, message }) => [code, message]),
      INDENT,
    ),
    ...findingLines(node.found, INDENT),
  ])
  const json = nodes.map(({ address, found }) => ({
    address,
    faults: findingsOf(found, 'faults'),
    warnings: findingsOf(found, 'warnings'),
    facts: findingsOf(found, 'facts'),
  }))
  return { lines, json: { nodes: json } }
}

const SETTINGS = ['min-replicas-to-write', 'save', 'appendfsync']

/**
 * Queries a node for everything that `check-store` shows beside `INFO`.
 *
 * @throws Error if it does not answer a command that every client may run.
 */
async function queryNode(node: RedisNode, info: string): Promise<NodeReplies> {
  const [seconds] = (await node.command('TIME')) as string[]
  const clockOffsetMs = Number(seconds) * 1000 - Date.now()
  const settings = new Map<string, string>()
  for (const name of SETTINGS) {
    // Managed services forbid this command.
    const reply = await node.command('CONFIG', 'GET', name).catch(() => undefined)
    if (Array.isArray(reply) && reply.length === 2) settings.set(name, String(reply[1]))
  }
  const { isBehindSentinel } = node
  return { info: fieldsOf(info), settings, clockOffsetMs, isBehindSentinel }
}

const fieldsOf = (info: string): Map<string, string> =>
  new Map(
    info.split(/\r?\n/).flatMap((line): [string, string][] => {
      const colon = line.indexOf(':')
      return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
    }),
  )
