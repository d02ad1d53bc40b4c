import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { UNAVAILABLE } from '../support/receiver/refusal-bytes.js'
import { until } from '../support/until.js'
import { expectReplayOf, expectResult, expectUnknown } from './answers.js'
import type { Answer } from './exchange.js'
import type { ReceiverProcess } from './receiver-process.js'
import { newOrder, type Order, openScene, type Scene } from './scene.js'
import { LEASE_MS, type Stop } from './stops.js'

const BEFORE_STORING = [
  'reserved',
  'before the write',
  'after the write',
  'before storing',
] as const satisfies Stop[]

let scene: Scene
/** For what is not to wait for Redis while that is unreachable. */
const HASTY = { timeoutMs: 1000 }

let runner: ReceiverProcess
let hasty: ReceiverProcess
/** Waits for as long as it takes. */
let other: ReceiverProcess
beforeAll(async () => {
  scene = await openScene()
  ;[runner, hasty, other] = await Promise.all([
    scene.launch(HASTY),
    scene.launch(HASTY),
    scene.launch(),
  ])
})
afterAll(() => scene.close())

interface Fault {
  begin(): void | Promise<void>
  end(): void | Promise<void>
}

const FAULTS: readonly (Fault & { name: string })[] = [
  { name: 'hangs', begin: () => scene.redis.pause(), end: () => scene.redis.resume() },
  { name: 'dies', begin: () => scene.redis.kill(), end: () => scene.redis.restart() },
]

const allAnswer = () =>
  Promise.all([runner, hasty, other].map((receiver) => scene.storeAnswers(receiver)))

interface Answered {
  readonly order: Order
  readonly answer: Answer
  /** When all receivers reached Redis again, of `performance.now`. */
  readonly backAt: number
}

/** An order whose request has stopped there. A busy machine may answer an earlier one with the 503. */
async function stopped(whenAbandoned: Order['whenAbandoned'], stop: Stop) {
  const arrival = runner.reached(stop).then(() => true)
  for (;;) {
    const order = newOrder(whenAbandoned)
    const exchange = scene.send(runner, order, { stopAt: stop })
    if (await Promise.race([arrival, exchange.answer.then(() => false)])) return { order, exchange }
    expect((await exchange.answer).raw).toBe(UNAVAILABLE)
  }
}

/** One order of each kind, answered while the fault lasts that has begun where they had stopped. */
async function answersDuring({ begin, end }: Fault, stop: Stop): Promise<Answered[]> {
  await allAnswer()
  const sent = [await stopped('refuse', stop), await stopped('rerun', stop)]
  await begin()
  runner.goOn()
  const answers = await Promise.all(sent.map(({ exchange }) => exchange.answer))
  const early = await Promise.all(sent.map(({ order }) => scene.send(hasty, order).answer))
  for (const { raw } of early) expect(raw).toBe(UNAVAILABLE)
  await end()
  await allAnswer()
  const backAt = performance.now()
  return sent.map(({ order }, index) => ({ order, answer: answers[index] as Answer, backAt }))
}

describe.each(FAULTS)('A write while Redis $name and comes back with its data', (fault) => {
  it('before it is reserved is the 503 and leaves nothing behind', async () => {
    for (const { order, answer, backAt } of await answersDuring(fault, 'before reserving')) {
      expect(answer.raw).toBe(UNAVAILABLE)
      expect(await scene.effects(order)).toEqual([])
      const { inProgress, final } = await scene.retry(other, order)
      await scene.expectWritten(order, final)
      // The lease of a reservation that has arrived late is over by then at the latest.
      for (const { askedAt } of inProgress) expect(askedAt).toBeLessThan(backAt + LEASE_MS)
    }
  })

  it.each(BEFORE_STORING)('%s is answered, and its retry never contradicts it', async (stop) => {
    for (const { order, answer } of await answersDuring(fault, stop)) {
      const [fence] = await scene.effects(order)
      expectResult(answer, order, { fence, isReplayed: false })
      const { final } = await scene.retry(other, order)
      const fences = await scene.effects(order)
      // What had reached a server that hung is done when it wakes up, and the result is kept.
      if (fault.name === 'hangs' && final.isReplayed) expectReplayOf(answer, final)
      else if (order.whenAbandoned === 'refuse') expectUnknown(final)
      else expectResult(final, order, { fence: fences[1], isReplayed: false })
      const ranAgain = final.status === 201 && !final.isReplayed
      expect(fences).toHaveLength(ranAgain ? 2 : 1)
      if (ranAgain) expect(fences[1]).toBeGreaterThan(fence ?? Number.NaN)
      const last = await scene.send(other, order).answer
      if (final.status === 201) expectReplayOf(final, last)
      else expectUnknown(last)
      expect(await scene.effects(order)).toEqual(fences)
    }
  })

  it.each(['stored', 'before sending', 'while sending'] as const)(
    '%s is answered, and so is its retry',
    async (stop) => {
      for (const { order, answer } of await answersDuring(fault, stop)) {
        await scene.expectWritten(order, answer)
        expectReplayOf(answer, await scene.send(other, order).answer)
        expect(await scene.effects(order)).toHaveLength(1)
      }
    },
  )
})

describe('A write whose Redis comes back without its data', () => {
  /** Stopped there while everything is lost. */
  async function loseDataAt(stop: Stop, order: Order) {
    await allAnswer()
    const exchange = scene.send(runner, order, { stopAt: stop })
    await runner.reached(stop)
    await scene.redis.restart({ keepData: false })
    await allAnswer()
    return exchange
  }

  it.each(['refuse', 'rerun'] as const)(
    'is reserved again by its next renewal (%s)',
    async (whenAbandoned) => {
      const order = newOrder(whenAbandoned)
      const exchange = await loseDataAt('after the write', order)
      await until('the renewal', async () => Number(await countRecords()) === 1)
      expect((await scene.send(other, order).answer).problem).toBe('request-in-progress')
      runner.goOn()
      const answer = await exchange.answer
      await scene.expectWritten(order, answer)
      expectReplayOf(answer, await scene.send(other, order).answer)
      expect(await scene.effects(order)).toHaveLength(1)
    },
  )

  it('has its result kept all the same when that was not stored yet', async () => {
    const order = newOrder('refuse')
    const exchange = await loseDataAt('before storing', order)
    runner.goOn()
    const answer = await exchange.answer
    await scene.expectWritten(order, answer)
    expectReplayOf(answer, await scene.send(other, order).answer)
    expect(await scene.effects(order)).toHaveLength(1)
  })

  it('is run again with a greater fence when its result is what was lost', async () => {
    const order = newOrder('refuse')
    const exchange = await loseDataAt('stored', order)
    runner.goOn()
    const [fence] = await scene.effects(order)
    expectResult(await exchange.answer, order, { fence, isReplayed: false })
    const again = await scene.send(other, order).answer
    const fences = await scene.effects(order)
    expectResult(again, order, { fence: fences[1], isReplayed: false })
    expect(fences[1]).toBeGreaterThan(fence ?? Number.NaN)
  })

  const countRecords = (): Promise<string> =>
    scene.redis.command('EVAL', "return #redis.call('KEYS', 'esa:k:*')", '0')
})

describe('A write whose receiver is killed while Redis hangs', () => {
  /** Redis has been asked, and does it after the receiver's death. */
  async function killWhile(stops: readonly [Stop, Stop]): Promise<readonly [Order, Order]> {
    await allAnswer()
    // It must not give up before it dies.
    const victim = await scene.launch({ timeoutMs: 10_000 })
    const orders = [newOrder('refuse'), newOrder('rerun')] as const
    const sent = orders.map((order) => scene.send(victim, order, { stopAt: stops }))
    await victim.reached(stops[0], sent.length)
    scene.redis.pause()
    victim.goOn()
    await victim.reached(stops[1], sent.length)
    await victim.kill()
    for (const { answer } of sent) expect((await answer).raw).toBe('')
    scene.redis.resume()
    await allAnswer()
    return orders
  }

  it('has an unknown outcome, or runs for the first time, when it was to be reserved', async () => {
    const [refused, rerun] = await killWhile(['before reserving', 'reserving'])
    const [unknown, run] = await Promise.all([
      scene.retry(other, refused),
      scene.retry(other, rerun),
    ])
    expectUnknown(unknown.final)
    expect(await scene.effects(refused)).toEqual([])
    await scene.expectWritten(rerun, run.final)
  })

  it('has its result kept when that was to be stored', async () => {
    for (const order of await killWhile(['before storing', 'storing'])) {
      expect(await scene.effects(order)).toHaveLength(1)
      const answer = await scene.send(other, order).answer
      await scene.expectWritten(order, answer, { isReplayed: true })
    }
  })
})
