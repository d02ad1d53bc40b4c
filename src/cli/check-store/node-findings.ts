import { type Found, fact, fault, warning } from '../output/findings.js'
import { formatDuration } from '../output/format-time.js'

/** What one Redis node replied. */
export interface NodeReplies {
  /** The fields of `INFO`; empty if the user may not run it. */
  readonly info: ReadonlyMap<string, string>
  /** The settings that the user may read. */
  readonly settings: ReadonlyMap<string, string>
  /** How far the node's clock is ahead of this machine's; negative if it is behind. */
  readonly clockOffsetMs: number
  readonly isBehindSentinel: boolean
}

/** Derives findings from a node's replies, except the findings of `checkNode`, which `check-store` adds. */
export function findingsOnNode(replies: NodeReplies): Found[] {
  const parts = [onVersion, onPersistence, onReplicas, onMemory]
  const onInfo = replies.info.size === 0 ? [] : parts.flatMap((part) => part(replies))
  return [...onInfo, ...onClock(replies)]
}

function onVersion({ info }: NodeReplies): Found[] {
  const valkey = info.get('valkey_version')
  const version = valkey === undefined ? `Redis ${info.get('redis_version')}` : `Valkey ${valkey}`
  const mode = info.get('redis_mode') ?? info.get('server_mode')
  return [fact('version', mode === undefined ? version : `${version}, ${mode}`)]
}

function onPersistence({ info, settings }: NodeReplies): Found[] {
  const isAppending = info.get('aof_enabled') === '1'
  const fsync = settings.get('appendfsync')
  const appending = isAppending ? `AOF on (fsync ${fsync ?? 'unknown'})` : 'AOF off'
  const schedule = settings.get('save')
  const saving = schedule === '' ? 'off' : 'on'
  const rdb = schedule === undefined ? 'unknown' : saving
  const shown = [fact('persistence', `${appending}, RDB ${rdb}`)]
  if (info.get('aof_last_write_status') === 'err') {
    shown.push(fault('aof_failing', 'the last write to the AOF failed: Redis refuses writes'))
  }
  if (info.get('rdb_last_bgsave_status') === 'err') {
    shown.push(fault('rdb_failing', 'the last RDB save failed: by default, Redis refuses writes'))
  }
  if (isAppending || rdb === 'on') return shown
  const loss = 'a restart loses tokens, records and denials'
  return [
    ...shown,
    warning('no_persistence', `AOF is off and RDB is ${rdb}: without both, ${loss}`),
  ]
}

function onReplicas({ info, settings, isBehindSentinel }: NodeReplies): Found[] {
  const count = Number(info.get('connected_slaves') ?? 0)
  // INFO has this field only if replicas are demanded.
  const good = info.get('min_slaves_good_slaves')
  const demanded = good === undefined ? '0' : settings.get('min-replicas-to-write')
  const shown = [
    fact('replicas', `${count} connected, min-replicas-to-write ${demanded ?? 'at least 1'}`),
  ]
  if (good !== undefined && Number(good) < Number(demanded)) {
    shown.push(fault('too_few_replicas', `${good} good replicas: Redis refuses writes`))
  }
  if (!isBehindSentinel) return shown
  if (count === 0) {
    shown.push(warning('no_replica', 'no replica is connected: a failover is impossible'))
  }
  if (good === undefined) shown.push(warning('min_replicas', WITHOUT_MIN_REPLICAS))
  return shown
}

const WITHOUT_MIN_REPLICAS =
  'without min-replicas-to-write, an isolated old primary keeps answering after a failover, and its clients miss new denials'

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

const CLOCK_TOLERANCE_MS = 5000

function onClock({ clockOffsetMs: offset }: NodeReplies): Found[] {
  if (Math.abs(offset) <= CLOCK_TOLERANCE_MS) return [fact('clock', 'agrees with this machine')]
  const apart = `${formatDuration(Math.abs(offset) / 1000)} ${offset > 0 ? 'ahead of' : 'behind'} this machine's`
  return [
    fact('clock', apart),
    warning('clock_apart', `the clock is ${apart}: denials and leases depend on it`),
  ]
}
