import { describe, expect, it } from 'vitest'
import type { NodeReplies } from '../../../src/cli/check-store/node-findings.js'
import { findingsOnNode } from '../../../src/cli/check-store/node-findings.js'
import { type Found, findingsOf } from '../../../src/cli/output/findings.js'

const INFO = {
  redis_version: '7.2.0',
  redis_mode: 'standalone',
  aof_enabled: '1',
  aof_last_write_status: 'ok',
  rdb_last_bgsave_status: 'ok',
  connected_slaves: '1',
  min_slaves_good_slaves: '1',
  used_memory: '1048576',
  maxmemory: '0',
  maxmemory_policy: 'noeviction',
}

const SETTINGS = { 'min-replicas-to-write': '1', save: '3600 1', appendfsync: 'always' }

interface Given extends Partial<Omit<NodeReplies, 'info' | 'settings'>> {
  readonly info?: Readonly<Record<string, string>>
  readonly settings?: Readonly<Record<string, string>>
}

function examine({ info, settings = SETTINGS, ...replies }: Given = {}) {
  return findingsOnNode({
    info: new Map(Object.entries({ ...INFO, ...info })),
    settings: new Map(Object.entries(settings)),
    clockOffsetMs: 0,
    isBehindSentinel: true,
    ...replies,
  })
}

const codes = (found: readonly Found[]) => ({
  faults: findingsOf(found, 'faults').map(({ code }) => code),
  warnings: findingsOf(found, 'warnings').map(({ code }) => code),
})

describe('the findings on a node', () => {
  it('are facts alone where all is well', () => {
    const found = examine()
    expect(codes(found)).toEqual({ faults: [], warnings: [] })
    expect(found.map(({ message }) => message)).toEqual([
      'Redis 7.2.0, standalone',
      'AOF on (fsync always), RDB on',
      '1 connected, min-replicas-to-write 1',
      '1.0 MiB used, no maxmemory, noeviction',
      'agrees with this machine',
    ])
  })

  it.each<[string, Given]>([
    ['no_persistence', { info: { aof_enabled: '0' }, settings: { ...SETTINGS, save: '' } }],
    ['no_persistence', { info: { aof_enabled: '0' }, settings: {} }],
    ['no_replica', { info: { connected_slaves: '0' } }],
    ['memory_nearly_full', { info: { maxmemory: '1100000' } }],
    ['clock_apart', { clockOffsetMs: -5001 }],
    ['clock_apart', { clockOffsetMs: 5001 }],
  ])('warn: %s', (code, given) => {
    expect(codes(examine(given))).toEqual({ faults: [], warnings: [code] })
  })

  it.each<[string, Given]>([
    ['aof_failing', { info: { aof_last_write_status: 'err' } }],
    ['rdb_failing', { info: { rdb_last_bgsave_status: 'err' } }],
    ['too_few_replicas', { info: { min_slaves_good_slaves: '0' } }],
    ['memory_full', { info: { maxmemory: '1048576' } }],
  ])('find a fault: %s', (code, given) => {
    expect(codes(examine(given))).toEqual({ faults: [code], warnings: [] })
  })

  it('do not ask for replicas where nobody fails over to them', () => {
    const alone = { info: { connected_slaves: '0' }, isBehindSentinel: false }
    expect(codes(examine(alone))).toEqual({ faults: [], warnings: [] })
  })

  it('know from INFO that replicas are demanded, where nobody may read the settings', () => {
    expect(examine({ settings: {} })).toContainEqual({
      kind: 'facts',
      code: 'replicas',
      message: '1 connected, min-replicas-to-write at least 1',
    })
  })
})
