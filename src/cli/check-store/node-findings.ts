import { type Findings, type Found, fact, fault, findingsOf, warning } from '../output/findings.js'
import { formatDuration } from '../output/format-time.js'

/** What one Redis node replied. */
export interface NodeReplies {
  /** The fields of `INFO`; empty if the user may not run it. */
  readonly info: ReadonlyMap<string, string>
  /** The settings that the user may read. */
  readonly settings: ReadonlyMap<string, string>
  /** How far the node's clock is ahead of this machine's, at least; negative if it is behind. */
  readonly clockOffsetMs: number
  /** The durations of the `PING` commands. */
  readonly roundTripsMs: readonly number[]
  /** The node's address on the connection; old releases of Redis do not report it. */
  readonly localAddress: string | undefined
}

interface NodeContext {
  readonly isBehindSentinel: boolean
  readonly nowMs: number
}

/** Derives findings from a node's replies, except the findings of `checkNode`, which `check-store` adds. */
export function findingsOnNode(replies: NodeReplies, context: NodeContext): Findings {
  const isInfoKnown = replies.info.size > 0
  const onInfo = isInfoKnown
    ? [
        ...onVersion(replies),
        ...onPersistence(replies, context),
        ...onReplicas(replies, context),
        ...onMemory(replies),
      ]
    : []
  return findingsOf([...onInfo, ...onLatency(replies), ...onClock(replies)])
}

function onVersion({ info }: NodeReplies): Found[] {
  const valkey = info.get('valkey_version')
  const version = valkey === undefined ? `Redis ${info.get('redis_version')}` : `Valkey ${valkey}`
  const mode = info.get('redis_mode') ?? info.get('server_mode')
  return [fact('version', mode === undefined ? version : `${version}, ${mode}`)]
}

function onPersistence({ info, settings }: NodeReplies, { nowMs }: NodeContext): Found[] {
  const isAppending = info.get('aof_enabled') === '1'
  const fsync = settings.get('appendfsync')
  const appending = isAppending
    ? `AOF on${fsync === undefined ? '' : ` (fsync ${fsync})`}`
    : 'AOF off'
  const schedule = settings.get('save')
  const savedAt = Number(info.get('rdb_last_save_time') ?? 0)
  const shown = [fact('persistence', `${appending}, ${formatSaving(schedule, savedAt, nowMs)}`)]
  if (info.get('aof_last_write_status') === 'err') {
    shown.push(fault('aof_failing', 'the last write to the AOF failed: Redis refuses writes'))
  }
  if (info.get('rdb_last_bgsave_status') === 'err') {
    shown.push(fault('rdb_failing', 'the last RDB save failed: by default, Redis refuses writes'))
  }
  if (isAppending) return shown
  const loss = 'a restart loses tokens, records and denials'
  if (schedule === '') shown.push(warning('no_persistence', `neither AOF nor RDB is on: ${loss}`))
  if (schedule === undefined) {
    shown.push(
      warning(
        'persistence_unknown',
        `AOF is off, and the RDB setting cannot be read: if RDB is off, too, ${loss}`,
      ),
    )
  }
  return shown
}

/** Until its first save, Redis reports its start time as `savedAt`. */
function formatSaving(schedule: string | undefined, savedAt: number, nowMs: number): string {
  if (schedule === undefined) return 'RDB unknown'
  if (schedule === '') return 'RDB off'
  return savedAt === 0 ? 'no RDB yet' : `last RDB ${formatDuration(nowMs / 1000 - savedAt)} ago`
}

function onReplicas({ info, settings }: NodeReplies, { isBehindSentinel }: NodeContext): Found[] {
  const count = Number(info.get('connected_slaves') ?? 0)
  const demanded = demandedReplicas({ info, settings })
  const shown = [fact('replicas', `${count} connected, min-replicas-to-write ${demanded}`)]
  const good = info.get('min_slaves_good_slaves')
  if (good !== undefined && Number(good) < Number(demanded)) {
    shown.push(fault('too_few_replicas', `${good} good replicas: Redis refuses writes`))
  }
  if (!isBehindSentinel) return shown
  if (count === 0) {
    shown.push(warning('no_replica', 'no replica is connected: a failover is impossible'))
  }
  if (demanded === 'unknown') {
    shown.push(
      warning(
        'min_replicas_unknown',
        `min-replicas-to-write cannot be read; ${WITHOUT_MIN_REPLICAS}`,
      ),
    )
  } else if (demanded === '0') {
    shown.push(warning('min_replicas', `min-replicas-to-write is 0; ${WITHOUT_MIN_REPLICAS}`))
  }
  return shown
}

const WITHOUT_MIN_REPLICAS =
  'below 1, an isolated old primary keeps answering after a failover, and its clients miss new denials'

/** `INFO` has the number of good replicas only if a minimum is set. */
function demandedReplicas({ info, settings }: Pick<NodeReplies, 'info' | 'settings'>): string {
  const setting = settings.get('min-replicas-to-write')
  // A lag of 0 disables `min-replicas-to-write`.
  if (settings.get('min-replicas-max-lag') === '0') return '0'
  if (setting !== undefined) return setting
  return info.has('min_slaves_good_slaves') ? 'at least 1' : 'unknown'
}

const NEARLY_FULL = 0.9

function onMemory({ info }: NodeReplies): Found[] {
  const used = Number(info.get('used_memory') ?? 0)
  const max = Number(info.get('maxmemory') ?? 0)
  const policy = info.get('maxmemory_policy')
  const limit = formatLimit(info.get('maxmemory'))
  const shown = [fact('memory', `${megabytes(used)} used, ${limit}, ${policy ?? 'policy unknown'}`)]
  if (max === 0 || used < max * NEARLY_FULL) return shown
  const share = `${Math.floor((used / max) * 100)}% of maxmemory is used`
  shown.push(
    used >= max
      ? fault('memory_full', `${share}: Redis refuses writes`)
      : warning('memory_nearly_full', `${share}: at 100%, Redis refuses writes`),
  )
  return shown
}

function formatLimit(maxmemory: string | undefined): string {
  if (maxmemory === undefined) return 'maxmemory unknown'
  return Number(maxmemory) === 0 ? 'no maxmemory' : `of ${megabytes(Number(maxmemory))}`
}

const megabytes = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`

/** Receivers wait 250 ms for a reply by default. */
const SLOW_MS = 100

function onLatency({ roundTripsMs }: NodeReplies): Found[] {
  const sorted = roundTripsMs.toSorted((one, other) => one - other)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const max = sorted.at(-1) ?? 0
  const words = `median ${median.toFixed(1)} ms, maximum ${max.toFixed(1)} ms of ${sorted.length} PINGs`
  const shown = [fact('latency', words)]
  if (max >= SLOW_MS) {
    shown.push(warning('slow', `a PING took ${max.toFixed(0)} ms; receivers time out after 250 ms`))
  }
  return shown
}

const CLOCK_TOLERANCE_MS = 5000

function onClock({ clockOffsetMs: offset }: NodeReplies): Found[] {
  const apart = `${(Math.abs(offset) / 1000).toFixed(3)} s ${offset > 0 ? 'ahead of' : 'behind'} this machine's`
  const shown = [fact('clock', offset === 0 ? 'agrees with this machine' : apart)]
  if (Math.abs(offset) > CLOCK_TOLERANCE_MS) {
    shown.push(warning('clock_apart', `the clock is ${apart}: denials and leases depend on it`))
  }
  return shown
}
