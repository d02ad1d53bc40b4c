import type { Attributes, BatchObservableCallback, Meter, Observable } from '@opentelemetry/api'
import type { StopListening } from '../../base/decision/observers.js'
import type { DenylistHealth } from '../../verification/denylist/live-denylist.js'
import type { KeySetHealth } from '../../verification/key-set/key-set.js'
import { keySetAddressOf } from '../../verification/key-set/key-set.js'
import { ATTRIBUTE, METRIC } from './metric-names.js'

/** The part of a `serviceAuth` that the gauges read. */
export interface ObservedServiceAuth {
  /** Returns its state, from memory; with several policies, that of each. */
  health(): ObservedHealth | { readonly policies: readonly ObservedHealth[] }
}

/**
 * The state of a policy.
 *
 * @inline
 */
interface ObservedHealth {
  readonly keySet: KeySetHealth
  readonly denylists?: readonly DenylistHealth[] | undefined
  readonly tokenCache?: { readonly hits: number; readonly misses: number } | undefined
}

/** Reads and reports the states of these policies whenever metrics are collected. */
export function observeHealth(
  meter: Meter,
  serviceAuths: readonly ObservedServiceAuth[],
): StopListening {
  const gauges = createGauges(meter)
  const observables = Object.values(gauges)
  const observe: BatchObservableCallback = (result) => {
    const values = createGaugeValues()
    for (const auth of serviceAuths) {
      try {
        const health = auth.health()
        if ('policies' in health) {
          for (const policy of health.policies) addValues(policy, keySetAddressOf(policy), values)
        } else addValues(health, keySetAddressOf(auth), values)
      } catch {
        // The other states are still reported.
      }
    }
    for (const name of GAUGES) {
      for (const { value, attributes } of values[name].values()) {
        result.observe(gauges[name], value, attributes)
      }
    }
  }
  meter.addBatchObservableCallback(observe, observables)
  return () => meter.removeBatchObservableCallback(observe, observables)
}

const GAUGES = [
  'keySetAge',
  'keySetKeys',
  'denylistAge',
  'denylistEntries',
  'tokenCacheRequests',
] as const

type Gauge = (typeof GAUGES)[number]

function createGauges(meter: Meter): Record<Gauge, Observable> {
  const gauge = (name: string, unit: string, description: string): Observable =>
    meter.createObservableGauge(name, { unit, description })
  return {
    keySetAge: gauge(METRIC.keySetAge, 's', 'Time since the last successful fetch.'),
    keySetKeys: gauge(METRIC.keySetKeys, '{key}', 'Keys that can be used.'),
    denylistAge: gauge(METRIC.denylistAge, 's', 'Time since the denylist was last confirmed.'),
    denylistEntries: gauge(METRIC.denylistEntries, '{entry}', 'Denied entries in force.'),
    tokenCacheRequests: meter.createObservableCounter(METRIC.tokenCacheRequests, {
      unit: '{request}',
      description: 'Requests whose token was in the cache (hit) or was verified (miss).',
    }),
  }
}

interface GaugeValue {
  readonly value: number
  readonly attributes: Attributes
}

/** One value per series, by the value of its attribute, which several policies may share. */
type GaugeValues = Record<Gauge, Map<unknown, GaugeValue>>

const createGaugeValues = (): GaugeValues =>
  Object.fromEntries(GAUGES.map((name) => [name, new Map()])) as GaugeValues

type Merge = (earlier: number, value: number) => number

const sum: Merge = (earlier, value) => earlier + value

/** Adds the state of one policy. If a series has two values, reports the worse one, or the sum of requests. */
function addValues(
  { keySet, denylists, tokenCache }: ObservedHealth,
  address: string | undefined,
  values: GaugeValues,
): void {
  const add = (gauge: Gauge, merge: Merge, { value, attributes }: GaugeValue): void => {
    const [attribute] = Object.values(attributes)
    const earlier = values[gauge].get(attribute)?.value
    const merged = earlier === undefined ? value : merge(earlier, value)
    values[gauge].set(attribute, { value: merged, attributes })
  }
  const keySetAttributes: Attributes =
    address === undefined ? {} : { [ATTRIBUTE.keySetUrl]: address }
  const { ageSeconds, keys } = keySet
  if (ageSeconds !== undefined) {
    add('keySetAge', Math.max, { value: ageSeconds, attributes: keySetAttributes })
  }
  add('keySetKeys', Math.min, { value: keys.length, attributes: keySetAttributes })
  for (const [index, { ageSeconds: age, entries }] of (denylists ?? []).entries()) {
    const attributes = { [ATTRIBUTE.denylistIndex]: index }
    if (age !== undefined) add('denylistAge', Math.max, { value: age, attributes })
    add('denylistEntries', Math.min, { value: entries, attributes })
  }
  if (tokenCache === undefined) return
  const { hits, misses } = tokenCache
  add('tokenCacheRequests', sum, { value: hits, attributes: { [ATTRIBUTE.result]: 'hit' } })
  add('tokenCacheRequests', sum, { value: misses, attributes: { [ATTRIBUTE.result]: 'miss' } })
}
