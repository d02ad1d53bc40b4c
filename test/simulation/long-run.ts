import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type HeapSample, heapSlope } from '../soak/memory.js'
import { Callers } from './callers.js'
import { type Machine, Random, STEADY } from './clock.js'
import { strike } from './happenings.js'
import type { Package } from './load.js'
import { createOperator } from './operator.js'
import { CoupledReceiver } from './postgres/receiver.js'
import { Receiver } from './receiver.js'
import { Stage } from './stage.js'
import { type Call, type Happening, SETTLE_MS, type Story } from './story.js'

const RECEIVERS = 3
const MINUTES = 60
const CALLS_A_MINUTE = 20
const MINUTE_MS = 60_000
/** Longer than records are kept, so that they are gone when the memory is measured. */
const QUIET_MS = 15 * MINUTE_MS
const MAX_PERCENT = 1
/** A line needs three points, and only the second half counts. */
const MIN_HOURS = 6

const CALL = {
  plan: { beforeMs: 5, afterMs: 5, ending: 'answers' },
  deadlineMs: 20_000,
  attemptTimeoutMs: 5000,
  maxAttempts: 10,
  reusesToken: false,
  asksAgain: true,
  settles: undefined,
} as const satisfies Partial<Call>

/** Of one receiver, or of what all of them use. */
const FAULTS: readonly Happening['what'][] = [
  'freeze receiver',
  'jump receiver clock',
  'cut link to Redis',
  'silence link to Redis',
  'separate receiver from Redis',
  'cut call',
  'freeze Redis',
  'restart Redis',
  'stop issuer',
]

const STORY: Story = {
  seed: 1,
  weather: { latencyMs: 2, delayChance: 0.02, delayMs: 300 },
  receivers: Array.from({ length: RECEIVERS }, () => STEADY),
  redis: { clock: STEADY, replicas: 0, lagMs: 1 },
  waitsForReplicas: false,
  leaseSeconds: 3,
  maxRunSeconds: 3600,
  whenAbandoned: 'refuse',
  isSingleUse: true,
  hasDenylist: true,
  operatorDistanceMs: 0,
  calls: [],
  happenings: [],
  restartsAtEnd: false,
  staleIfErrorSeconds: 600,
  keysAtEnd: undefined,
}

const STORIES: Readonly<Record<string, Story>> = {
  leased: STORY,
  coupled: {
    ...STORY,
    hasDenylist: false,
    coupled: {
      stepMs: 1,
      connections: 10,
      transactionMs: 5000,
      resolveMs: 3000,
      isolation: 'read committed',
      retentionSeconds: 60,
      sweepSeconds: 60,
      isTokenSpentWithin: false,
    },
  },
}

interface Sample extends HeapSample {
  readonly timers: number
  readonly connections: number
}

/**
 * Receivers under load and faults for many simulated hours. Measures the heap after each hour and a quiet quarter of
 * an hour. Returns whether it stayed flat.
 */
export async function simulateHours(esa: Package, of: string, hours: number): Promise<boolean> {
  const story = STORIES[of]
  if (story === undefined) throw new Error(`--hours is for ${Object.keys(STORIES).join(' and ')}`)
  if (!(hours >= MIN_HOURS)) throw new Error(`--hours takes a number from ${MIN_HOURS}`)
  const stage = new Stage(story, esa)
  const random = new Random(story.seed)
  const ReceiverOfStory = story.coupled === undefined ? Receiver : CoupledReceiver
  const receivers = story.receivers.map(
    (clock, index) => new ReceiverOfStory(stage, `receiver ${index + 1}`, clock),
  )
  const nature = stage.simulation.server('nature')
  const pass = (ms: number): Promise<void> => stage.simulation.pass(ms, nature)
  for (const receiver of receivers) receiver.start()
  const machines = stage.simulation.machines.length
  const samples: Sample[] = []
  for (let hour = 1; hour <= hours; hour += 1) {
    await simulateHour(stage, receivers, { hour, random, pass })
    await pass(QUIET_MS)
    forget(stage, machines)
    const sample = { at: hour, ...measure(stage, receivers) }
    samples.push(sample)
    console.log(
      `${of}, hour ${hour}: ${(sample.heap / 1e6).toFixed(2)} MB, ${sample.timers} timers, ${sample.connections} connections`,
    )
  }
  const { percent, error } = heapSlope(samples)
  console.log(`${of}: heap ${percent.toFixed(2)} ± ${error.toFixed(2)} % per hour`)
  return percent <= Math.max(MAX_PERCENT, 2 * error)
}

interface Hour {
  readonly hour: number
  readonly random: Random
  pass(ms: number): Promise<void>
}

/** In each minute, calls with new keys, and one fault. At the end one receiver is replaced, and a key rotated. */
async function simulateHour(
  stage: Stage,
  receivers: readonly Receiver[],
  { hour, random, pass }: Hour,
): Promise<void> {
  const { simulation } = stage
  const operator = createOperator(stage)
  const callers = new Callers(stage, receivers, operator)
  const parties = { stage, receivers, operator }
  for (let minute = 0; minute < MINUTES; minute += 1) {
    for (let number = 0; number < CALLS_A_MINUTE; number += 1) {
      const call = { ...CALL, at: 0, caller: number % 5, service: 'billing', body: 'x' }
      const key = `${hour}-${minute}-${number}`
      simulation.after(random.between(0, MINUTE_MS / 2), stage.issuer.machine, () =>
        callers.call({ ...call, key }),
      )
    }
    const happening: Happening = {
      what: random.pick(FAULTS),
      at: 0,
      unit: 'ms',
      which: random.below(8),
      ms: random.between(0, 6000),
      drops: random.pick([[], ['client'], ['server']] as const),
    }
    simulation.after(random.between(0, MINUTE_MS / 2), stage.issuer.machine, () => {
      strike(parties, happening)
    })
    await pass(MINUTE_MS)
    // Or the limit of a story is reached.
    simulation.events = 0
  }
  await replaceOne(stage, receivers.at(-1) as Receiver, pass)
  rotateKey(stage)
  await simulation.run(() => callers.open === 0)
  operator.close()
  await pass(MINUTE_MS)
}

/** It closes what it has opened, and a new process starts. A kill would leave its objects behind in this process. */
async function replaceOne(stage: Stage, receiver: Receiver, pass: Hour['pass']): Promise<void> {
  receiver.stop()
  await pass(SETTLE_MS)
  stage.network.ended(receiver.machine)
  receiver.machine.kill()
  receiver.start()
}

function rotateKey({ issuer }: Stage): void {
  const [oldest] = issuer.published
  if (issuer.addKey() !== undefined) issuer.removeKey()
  else if (oldest !== undefined) issuer.published = [oldest]
}

/** Drops what only the simulation remembers: the history, ended machines, expired keys of Redis. */
function forget(
  { history, storedAs, plans, simulation, redis, postgres }: Stage,
  machines: number,
) {
  for (const list of Object.values(history) as unknown[][]) list.length = 0
  storedAs.clear()
  plans.clear()
  const living = simulation.machines.filter((each, index) => index < machines || isUsed(each))
  simulation.machines.splice(0, Number.POSITIVE_INFINITY, ...living)
  for (const [key, { endsAt }] of redis.keys.values)
    if (endsAt <= redis.machine.wallMs()) redis.keys.values.delete(key)
  redis.restart(0, 0)
  for (const [id, { table }] of postgres?.rows ?? [])
    if (table === 'effect') postgres?.rows.delete(id)
}

const isUsed = ({ isAlive, name }: Machine): boolean => isAlive && name.startsWith('receiver')

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function measure({ network }: Stage, receivers: readonly Receiver[]): Omit<Sample, 'at'> {
  collectGarbage()
  collectGarbage()
  const timers = receivers.reduce((sum, { machine }) => sum + machine.timers.size, 0)
  const open = [...network.connections].filter(({ ends }) => ends.client?.machine.isAlive)
  return { heap: process.memoryUsage().heapUsed, timers, connections: open.length }
}
