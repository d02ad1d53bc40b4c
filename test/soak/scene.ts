import { setTimeout as delay } from 'node:timers/promises'
import type { Place } from '../support/process/place.js'
import type { RedisServer } from '../support/redis/redis.js'
import { between, type Faults } from './commotion.js'
import type { Network } from './own-network.js'
import type { StoreSettings } from './receiver-process.js'
import type { Failover, Row } from './table.js'

/** The servers of a store, and what may happen to them. */
export interface Scene {
  readonly settings: StoreSettings
  readonly places: readonly Place[]
  /** Each ends with all servers running. */
  readonly faults: Faults
  /** Finds the primary of each shard, if its replica has all that it has. */
  readonly shards: Readonly<Record<string, () => Promise<Primary | undefined>>>
  /** @param record what the store calls a key */
  shardOf(record: string): string
  /** The table of effects, the first of a key first. */
  readTable(): Promise<readonly Row[]>
  /** What is wrong with the store in the end. */
  check(): Promise<readonly string[]>
  stop(): Promise<void>
}

/** Two failovers in a row may lead back to the same server, but not by the same promotion. */
export interface Primary {
  readonly server: object
  /** The promotion that made it the primary; `undefined` if it has been the primary since it started. */
  readonly promotion?: string | undefined
}

export interface SceneOptions {
  readonly network: Network
  /** Whether replicas acknowledge each reservation, or each commit. */
  readonly hasReplicas: boolean
  /** For the table, where the store has none. */
  readonly folder: string
}

const RECOVERY_MS = 120_000

/** Some are over before anybody notices, others make a replica the primary. */
export const faultLasts = (): Promise<void> => delay(between(200, 6000))

type Server = Pick<RedisServer, 'kill' | 'restart' | 'pause' | 'resume'>

export const faultsOfServers = (pick: () => Server): Faults => ({
  async 'server killed'() {
    const server = pick()
    await server.kill()
    await faultLasts()
    await server.restart()
  },
  async 'server paused'() {
    const server = pick()
    server.pause()
    await faultLasts()
    server.resume()
  },
})

/** Waits for the primaries, and notes when another server has become one. */
export function watchPrimaries(shards: Scene['shards']) {
  const failovers: Failover[] = []
  const known = new Map<string, { readonly primary: Primary; readonly at: number }>()
  const untilInStep = async (shard: string, find: () => Promise<Primary | undefined>) => {
    const giveUpAt = performance.now() + RECOVERY_MS
    while (performance.now() < giveUpAt) {
      const primary = await find().catch(() => undefined)
      if (primary !== undefined) return primary
      await delay(200)
    }
    throw new Error(`${shard} has not recovered`)
  }
  return {
    failovers,
    /** Resolves when each primary has its replica in step. */
    async recovered(): Promise<void> {
      for (const [shard, find] of Object.entries(shards)) {
        const primary = await untilInStep(shard, find)
        const [before, at] = [known.get(shard), Date.now()]
        if (before && isPromoted(before.primary, primary))
          failovers.push({ shard, from: before.at, to: at })
        known.set(shard, { primary, at })
      }
    },
  }
}

const isPromoted = (before: Primary, { server, promotion }: Primary): boolean =>
  before.server !== server || (promotion !== undefined && before.promotion !== promotion)
