import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createTestIssuer } from 'express-service-auth/testing'
import { deriveRecordId } from '../../src/idempotency/fingerprint.js'
import { freePort } from '../support/network/free-port.js'
import { createCaller } from './caller.js'
import { between, createGate, disturb, type Faults, keepWriting, pickOne } from './commotion.js'
import { type HeapSample, heapSlope } from './memory.js'
import type { Network } from './own-network.js'
import { openPostgres } from './postgres.js'
import {
  type Measurement,
  OPERATION,
  type ReceiverProcess,
  startReceiver,
} from './receiver-process.js'
import { openCluster, openSentinel } from './redis.js'
import { faultLasts, type Scene, watchPrimaries } from './scene.js'
import { judge, secondsOf } from './table.js'

export const STORES = { cluster: openCluster, sentinel: openSentinel, postgres: openPostgres }
export type StoreName = keyof typeof STORES

export interface SoakOptions {
  readonly store: StoreName
  readonly seconds: number
  /** How many callers write at once. */
  readonly writers: number
  /** Whether replicas acknowledge each reservation, or each commit. */
  readonly hasReplicas: boolean
  readonly network: Network
}

type Sample = HeapSample & Measurement

export interface SoakReport {
  readonly figures: Readonly<Record<string, number | string>>
  /** What was lost in a failover. */
  readonly explained: readonly string[]
  readonly violations: readonly string[]
}

const RECEIVERS = 3
const FAULT_EVERY_MS = 5000
const MEASURE_EVERY_MS = 60_000
/** Of a run that is short. */
const MEASUREMENTS = 10
/** For the receivers to close what nobody uses. */
const SETTLE_MS = 1500
/** Less than the tolerance of the receivers. */
const MAX_CLOCK_ERROR_MS = 40_000
/** For the last retries, once nothing is broken any more. */
const GRACE_MS = 120_000
const MAX_HEAP_PERCENT = 1
/** A line through less says nothing. */
const MIN_HOURS = 0.3

/**
 * Three receivers on a store with replicas, whose servers and receivers are killed, paused and separated at
 * random, and whose clocks jump, while callers write and retry. In the end the effects in a table are compared
 * with the answers.
 */
export async function soak({ store, seconds, ...options }: SoakOptions): Promise<SoakReport> {
  const { network, hasReplicas, writers } = options
  const folder = await mkdtemp(join(tmpdir(), 'esa-soak-'))
  const scene = await STORES[store]({ ...options, folder })
  const issuer = await createTestIssuer()
  const jwksUri = await network.publish(issuer.jwksUri)
  const receivers: ReceiverProcess[] = []
  for (const place of await network.addPlaces(RECEIVERS)) {
    const settings = { ...scene.settings, issuer: issuer.url, jwksUri, port: await freePort() }
    receivers.push(await startReceiver(place, settings))
  }
  // It is never killed, so that what it keeps too long is seen.
  const oldest = receivers[0] as ReceiverProcess
  const primaries = watchPrimaries(scene.shards)
  await primaries.recovered()
  const startedAt = performance.now()
  const endsAt = startedAt + seconds * 1000
  const caller = createCaller({
    targets: receivers.map(({ place: { host }, port }) => ({ host, port })),
    token: issuer.token,
    giveUpAt: endsAt + GRACE_MS,
  })
  let isBroken = false
  const isOver = (): boolean => isBroken || performance.now() >= endsAt
  const end = (error: unknown): void => {
    caller.violations.push(String(error))
    isBroken = true
  }
  const [faultGate, writeGate] = [createGate(), createGate()]
  const notes: string[] = []
  const samples: Sample[] = []

  /** One at a time: a store with one replica survives the loss of one server of a shard, not of two. */
  const withRecovery = ([name, work]: readonly [string, Faults[string]]) => {
    const fault = async (): Promise<void> => {
      await primaries.recovered()
      notes.push(`${secondsOf(Date.now())} ${name}`)
      await work()
      await network.heal()
      await primaries.recovered()
    }
    return [name, fault] as const
  }
  const ofServers = { ...scene.faults, ...partitions(network, scene, receivers) }
  const keepDisturbing = (faults: Faults) =>
    disturb(faults, { gate: faultGate, isOver, everyMs: FAULT_EVERY_MS }).catch(end)
  const keepMeasuring = async (): Promise<void> => {
    for (;;) {
      await delay(Math.min(MEASURE_EVERY_MS, (seconds * 1000) / MEASUREMENTS))
      if (isOver()) return
      for (const gate of [faultGate, writeGate]) await gate.close()
      caller.disconnect()
      await delay(SETTLE_MS)
      const at = (performance.now() - startedAt) / 3_600_000
      const sample = { at, ...(await oldest.measure()) }
      samples.push(sample)
      const done = `${caller.answers.size} writes, ${primaries.failovers.length} failovers`
      console.log(`${store} ${done} ${JSON.stringify(sample)} ${notes.splice(0).join(', ')}`)
      for (const gate of [faultGate, writeGate]) gate.open()
    }
  }
  const [serverFaults, receiverFaults] = await Promise.all([
    keepDisturbing(Object.fromEntries(Object.entries(ofServers).map(withRecovery))),
    keepDisturbing(faultsOf(receivers)),
    keepMeasuring().catch(end),
    ...Array.from({ length: writers }, (_, writer) =>
      keepWriting(caller, { gate: writeGate, isOver, name: `${store}-${writer}` }),
    ),
  ])
  const tookSeconds = (performance.now() - startedAt) / 1000
  await primaries.recovered().catch(end)
  const rows = await scene.readTable()
  const scope = { issuer: issuer.url, audience: 'orders', caller: 'billing', operation: OPERATION }
  const shardOf = (key: string): string => scene.shardOf(deriveRecordId(scope, key))
  const answers = [...caller.answers.values()]
  const { failovers } = primaries
  const { explained, unexplained, ...found } = judge({ rows, answers, failovers, shardOf })
  const wrong = await scene.check()
  await Promise.all(receivers.map((receiver) => receiver.stop()))
  caller.disconnect()
  await scene.stop()
  await issuer.close()
  await rm(folder, { recursive: true })

  const heap = heapSlope(samples)
  const isGrowing =
    seconds / 3600 >= MIN_HOURS && heap.percent > Math.max(MAX_HEAP_PERCENT, 2 * heap.error)
  const spanOf = (read: (sample: Sample) => number): string =>
    `${Math.min(...samples.map(read))} to ${Math.max(...samples.map(read))}`
  return {
    figures: {
      'writes answered': caller.answers.size,
      'a second': Math.round(caller.answers.size / tookSeconds),
      'effects in table': rows.length,
      ...found,
      ...caller.counts,
      failovers: failovers.length,
      ...serverFaults,
      ...receiverFaults,
      'heap, MB': spanOf((sample) => Number((sample.heap / 1e6).toFixed(2))),
      'heap, % per hour': `${heap.percent.toFixed(1)} ± ${heap.error.toFixed(1)}`,
      handles: spanOf((sample) => sample.handles),
      listeners: spanOf((sample) => sample.listeners),
      connections: spanOf((sample) => sample.connections),
    },
    explained: hasReplicas ? [] : explained,
    violations: [
      ...caller.violations,
      ...wrong,
      ...unexplained,
      ...(hasReplicas ? explained : []),
      ...(isGrowing ? ['the heap of a receiver grows'] : []),
    ],
  }
}

const faultsOf = (receivers: readonly ReceiverProcess[]): Faults => ({
  'receiver killed': () => pickOne(receivers.slice(1)).replace(),
  async 'receiver paused'() {
    const receiver = pickOne(receivers)
    receiver.signal('SIGSTOP')
    await faultLasts()
    receiver.signal('SIGCONT')
  },
  async 'clock jumped'() {
    pickOne(receivers).setClockError(between(-MAX_CLOCK_ERROR_MS, MAX_CLOCK_ERROR_MS))
  },
})

/** Of at most about half of the servers and receivers. */
function partitions(
  network: Network,
  { places }: Scene,
  receivers: readonly ReceiverProcess[],
): Faults {
  if (!network.hasPartitions) return {}
  const all = [...places, ...receivers.map(({ place }) => place)]
  const some = () => {
    const share = between(0, 0.5)
    const found = all.filter(() => Math.random() < share)
    return found.length > 0 ? found : [pickOne(all)]
  }
  return {
    'some separated': () => network.separate(some()).then(faultLasts),
    'some isolated': () => network.isolate(some()).then(faultLasts),
  }
}
