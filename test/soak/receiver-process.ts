import { once } from 'node:events'
import { type Launched, launch } from '../support/process/launch.js'
import type { Place } from '../support/process/place.js'
import { objectBytes } from './memory.js'

/** What the receivers of a store are told of it. */
export interface StoreSettings {
  /** The nodes of a cluster, or sentinels, which know the primary by `sentinelName`. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly sentinelName?: string
  readonly replicas?: { readonly min: number; readonly timeoutMs: number }
  /** The table of effects, on Redis. */
  readonly tableFile?: string
  /** On Postgres. */
  readonly databaseUrl?: string
}

export interface ReceiverSettings extends StoreSettings {
  readonly port: number
  readonly issuer: string
  readonly jwksUri: string
}

export interface ReceiverMeasurement {
  /** A heap snapshot. */
  readonly heapFile: string
  readonly handles: number
  /** Of the process, its HTTP server and its client. */
  readonly listeners: number
  /** Of callers. */
  readonly connections: number
}

/** What a receiver holds, after a garbage collection. */
export interface Measurement extends Omit<ReceiverMeasurement, 'heapFile'> {
  /** The bytes of its objects. */
  readonly heap: number
}

/** A receiver in a process of its own, which can be killed and comes back at the same address. */
export interface ReceiverProcess {
  readonly place: Place
  readonly port: number
  /** SIGKILL, then a new process. */
  replace(): Promise<void>
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** From now on its clock is wrong by this much. */
  setClockError(milliseconds: number): void
  measure(): Promise<Measurement>
  stop(): Promise<void>
}

/** The operation of its keys. */
export const OPERATION = 'create an order'

const PROGRAM = new URL('receiver.ts', import.meta.url)

export async function startReceiver(
  place: Place,
  settings: ReceiverSettings,
): Promise<ReceiverProcess> {
  const env = { HOST: place.host, SETTINGS: JSON.stringify(settings) }
  const start = (): Promise<Launched<unknown>> => launch(PROGRAM, { env, place })
  let running = await start()
  return {
    place,
    port: settings.port,
    async replace() {
      await running.kill()
      let started: typeof running | undefined
      // It does not start while it does not reach the issuer.
      while (started === undefined) started = await start().catch(() => undefined)
      running = started
    },
    signal: (signal) => void running.child.kill(signal),
    setClockError: (milliseconds) => void running.child.send(milliseconds),
    async measure() {
      running.child.send('measure')
      const [{ heapFile, ...counts }] = (await once(running.child, 'message')) as [
        ReceiverMeasurement,
      ]
      return { ...counts, heap: await objectBytes(heapFile) }
    },
    stop: () => running.kill(),
  }
}
