import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.js'
import { expectResult, expectUnknown } from './answers.js'
import type { Answer } from './exchange.js'
import type { ReceiverProcess } from './receiver-process.js'
import { newOrder, type Order, openScene, type Retries, type Scene } from './scene.js'
import { LEASE_MS, type Stop } from './stops.js'

/** For milliseconds that Redis rounds, and a command that was on its way. */
const SLACK_MS = 100

const LOST: readonly { stop: Stop; written: 0 | 1 }[] = [
  { stop: 'reserved', written: 0 },
  { stop: 'before the write', written: 0 },
  { stop: 'after the write', written: 1 },
  { stop: 'before storing', written: 1 },
]
const KEPT = ['stored', 'before sending', 'while sending'] as const satisfies Stop[]
const STOPS: readonly Stop[] = [
  'before reserving',
  ...LOST.map(({ stop }) => stop),
  ...KEPT,
  'while streaming',
]

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene.close())

/** What has become of one order when its receiver died. */
interface Casualty {
  readonly stop: Stop
  readonly order: Order
  readonly token: string
  readonly sentAt: number
  readonly diedAt: number
  /** What the caller got before the connection broke. */
  readonly received: Answer
}

/** One order of each kind, stopped at each of the points; then their receiver dies. */
async function killAt(victim: ReceiverProcess, stops: readonly Stop[]): Promise<Casualty[]> {
  const sentAt = performance.now()
  const sent = stops.flatMap((stop) =>
    (['refuse', 'rerun'] as const).map((whenAbandoned) => {
      const order = newOrder(whenAbandoned, stop === 'while streaming')
      const token = scene.issuer.token()
      return { stop, order, token, exchange: scene.send(victim, order, { stopAt: stop, token }) }
    }),
  )
  await Promise.all(stops.map((stop) => victim.reached(stop, 2)))
  await victim.kill()
  const diedAt = performance.now()
  return Promise.all(
    sent.map(async ({ exchange, ...known }) => {
      return { ...known, sentAt, diedAt, received: await exchange.answer }
    }),
  )
}

/** In progress for as long as the dead run's lease, and no longer. */
function expectLeaseKept({ inProgress, final }: Retries, { sentAt, diedAt }: Casualty): void {
  const leaseEndsBy = diedAt + LEASE_MS + SLACK_MS
  for (const { askedAt } of inProgress) expect(askedAt).toBeLessThan(leaseEndsBy)
  expect(final.answeredAt).toBeGreaterThan(sentAt + LEASE_MS - SLACK_MS)
}

// At the same time: they wait for leases that end at the same time.
describe.concurrent.each(['4', '5'] as const)('A killed receiver, Express %s', (express) => {
  let survivor: ReceiverProcess
  let casualties: readonly Casualty[]
  beforeAll(async () => {
    const launched = await Promise.all([scene.launch({ express }), scene.launch({ express })])
    survivor = launched[0]
    casualties = await killAt(launched[1], STOPS)
  })

  const casualtyOf = (stop: Stop, whenAbandoned: Order['whenAbandoned']): Casualty => {
    const found = casualties.find(
      (each) => each.stop === stop && each.order.whenAbandoned === whenAbandoned,
    )
    if (found === undefined) throw new Error(`nothing was stopped at ${stop}`)
    return found
  }

  it('has cut all its callers off, and spent their tokens', async () => {
    for (const { order, token, received } of casualties) {
      expect(received.isWhole).toBe(false)
      expect((await scene.send(survivor, order, { token }).answer).status).toBe(401)
    }
  })

  describe.each(['refuse', 'rerun'] as const)('(%s)', (whenAbandoned) => {
    it('leaves nothing behind of what it had not reserved', async () => {
      const { order } = casualtyOf('before reserving', whenAbandoned)
      await scene.expectWritten(order, await scene.send(survivor, order).answer)
    })

    it.each(KEPT)('leaves its result to the byte: %s', async (stop) => {
      const { order, received } = casualtyOf(stop, whenAbandoned)
      const first = await scene.send(survivor, order).answer
      await scene.expectWritten(order, first, { isReplayed: true })
      expect((await scene.send(survivor, order).answer).raw).toBe(first.raw)
      expect(await scene.effects(order)).toHaveLength(1)
      if (stop === 'while sending') {
        // Half of the bytes, of which the last may be part of a character.
        expect(received).toMatchObject({ status: 201, isReplayed: false })
        expect(received.body.length).toBeGreaterThan(100)
        expect(first.body.startsWith(received.body.replace(/\uFFFD+$/, ''))).toBe(true)
      } else expect(received.raw).toBe('')
    })

    it('leaves too large a result neither kept nor to be run again', async () => {
      const { order, diedAt } = casualtyOf('while streaming', whenAbandoned)
      const isLeaseOver = async (): Promise<boolean> =>
        performance.now() > diedAt + LEASE_MS + SLACK_MS
      const expectNotStored = async (): Promise<void> => {
        const { status, problem } = await scene.send(survivor, order).answer
        expect({ status, problem }).toEqual({ status: 409, problem: 'result-not-stored' })
        expect(await scene.effects(order)).toHaveLength(1)
      }
      await expectNotStored()
      await until('the end of the lease', isLeaseOver)
      await expectNotStored()
    })
  })

  it.each(LOST)('leaves a lease, then the outcome unknown: $stop', async ({ stop, written }) => {
    const casualty = casualtyOf(stop, 'refuse')
    const { order } = casualty
    const retries = await scene.retry(survivor, order)
    expectLeaseKept(retries, casualty)
    expectUnknown(retries.final)
    expectUnknown(await scene.send(survivor, order).answer)
    expect(await scene.effects(order)).toHaveLength(written)
  })

  it.each(LOST)('leaves a lease, then one more run: $stop', async ({ stop, written }) => {
    const casualty = casualtyOf(stop, 'rerun')
    const { order } = casualty
    const retries = await Promise.all([1, 2, 3, 4].map(() => scene.retry(survivor, order)))
    const fences = await scene.effects(order)
    expect(fences).toHaveLength(written + 1)
    const fence = fences.at(-1)
    if (written === 1) expect(fence).toBeGreaterThan(fences[0] ?? Number.NaN)
    const runs = retries.filter(({ final }) => !final.isReplayed)
    expect(runs).toHaveLength(1)
    const [run] = runs as [Retries]
    expectLeaseKept(run, casualty)
    // The others may have met the new run, too, but never after its answer.
    for (const { inProgress } of retries) {
      for (const { askedAt } of inProgress) expect(askedAt).toBeLessThan(run.final.answeredAt)
    }
    for (const { final } of retries) {
      expectResult(final, order, { fence, isReplayed: final.isReplayed })
    }
  })
})
