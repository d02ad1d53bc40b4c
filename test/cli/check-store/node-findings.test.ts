import { describe, expect, it } from 'vitest'
import type { NodeReplies } from '../../../src/cli/check-store/node-findings.js'
import { findingsOnNode } from '../../../src/cli/check-store/node-findings.js'
import type { Findings } from '../../../src/cli/output/findings.js'

const NOW_MS = 1_800_000_000_000

const INFO = {
  redis_version: '7.2.0',
  redis_mode: 'standalone',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  rdb_last_save_time: String(NOW_MS / 1000 - 600),
  rdb_last_bgsave_status: 'ok',
  connected_slaves: '1',
  used_memory: '1048576',
  maxmemory: '0',
  maxmemory_policy: 'noeviction',
}

const SETTINGS = { 'min-replicas-to-write': '1', save: '3600 1', appendfsync: 'always' }

interface Given {
  readonly info?: Readonly<Record<string, string>>
  readonly settings?: Readonly<Record<string, string>>
  readonly answers?: Partial<NodeReplies>
  readonly isBehindSentinel?: boolean
}

function examine({ info, settings = SETTINGS, answers, isBehindSentinel = true }: Given = {}) {
  const given: NodeReplies = {
    info: new Map(Object.entries({ ...INFO, ...info })),
    settings: new Map(Object.entries(settings)),
    clockOffsetMs: 0,
    roundTripsMs: [3, 1, 2],
    localAddress: undefined,
    ...answers,
  }
  return findingsOnNode(given, { isBehindSentinel, nowMs: NOW_MS })
}

const codes = ({ faults, warnings }: Findings) => ({
  faults: faults.map(({ code }) => code),
  warnings: warnings.map(({ code }) => code),
})

describe('the findings on a node', () => {
  it('are facts alone where all is well', () => {
    const found = examine()
    expect(codes(found)).toEqual({ faults: [], warnings: [] })
    expect(found.facts.map(({ message }) => message)).toEqual([
      'Redis 7.2.0, standalone',
      'AOF on (fsync always), last RDB 10 min ago',
      '1 connected, min-replicas-to-write 1',
      '1.0 MiB used, no maxmemory, noeviction',
      'median 2.0 ms, maximum 3.0 ms of 3 PINGs',
      'agrees with this machine',
    ])
  })

  it.each<[string, Given]>([
    ['no_persistence', { info: { aof_enabled: '0' }, settings: { ...SETTINGS, save: '' } }],
    [
      'persistence_unknown',
      { info: { aof_enabled: '0' }, settings: { 'min-replicas-to-write': '1' } },
    ],
    ['no_replica', { info: { connected_slaves: '0' } }],
    ['min_replicas', { settings: { ...SETTINGS, 'min-replicas-to-write': '0' } }],
    ['min_replicas_unknown', { settings: {} }],
    ['memory_nearly_full', { info: { maxmemory: '1100000' } }],
    ['slow', { answers: { roundTripsMs: [1, 1, 100] } }],
    ['clock_apart', { answers: { clockOffsetMs: -5001 } }],
    ['clock_apart', { answers: { clockOffsetMs: 5001 } }],
  ])('warn: %s', (code, given) => {
    expect(codes(examine(given))).toEqual({ faults: [], warnings: [code] })
  })

  it('take no start of the server for an RDB where it may be off', () => {
    const { facts } = examine({ settings: { 'min-replicas-to-write': '1' } })
    expect(facts[1]?.message).toBe('AOF on, RDB unknown')
  })

  it.each<[string, Given]>([
    ['aof_failing', { info: { aof_last_write_status: 'err' } }],
    ['rdb_failing', { info: { rdb_last_bgsave_status: 'err' } }],
    ['memory_full', { info: { maxmemory: '1048576' } }],
  ])('find a fault: %s', (code, given) => {
    expect(codes(examine(given))).toEqual({ faults: [code], warnings: [] })
  })

  it('do not ask for replicas where nobody fails over to them', () => {
    const alone = { info: { connected_slaves: '0' }, settings: {}, isBehindSentinel: false }
    expect(codes(examine(alone))).toEqual({ faults: [], warnings: [] })
  })

  it('know from INFO that replicas are demanded', () => {
    const given = { info: { min_slaves_good_slaves: '1' }, settings: {} }
    expect(codes(examine(given)).warnings).toEqual([])
    expect(examine(given).facts).toContainEqual({
      code: 'replicas',
      message: '1 connected, min-replicas-to-write at least 1',
    })
  })
})
