import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectReplayOf, expectResult } from './answers.js'
import type { Answer } from './exchange.js'
import type { ReceiverProcess } from './receiver-process.js'
import { newOrder, type Order, openScene, type Scene } from './scene.js'
import type { Stop } from './stops.js'

const REQUESTS = 200
/** So long that a busy machine's late renewals lose nothing. */
const LEASE_MS = 30_000
/** In seconds; it is renewed after a third. */
const LEFT_OF_LEASE = expect.stringMatching(/^(2\d|30)$/)

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene.close())

describe.each(['4', '5'] as const)('Two hundred identical requests, Express %s', (express) => {
  let receivers: readonly ReceiverProcess[]
  beforeAll(async () => {
    // Nothing here is about the store's bound or the lease, and the machine is busy.
    const options = { express, timeoutMs: 10_000, leaseMs: LEASE_MS }
    receivers = await Promise.all([scene.launch(options), scene.launch(options)])
  })

  const sendAll = (order: Order, stopAt?: Stop): Promise<Answer>[] =>
    Array.from({ length: REQUESTS }, (_, index) => {
      const to = receivers[index % 2] as ReceiverProcess
      return scene.send(to, order, stopAt && { stopAt }).answer
    })

  it.each(['refuse', 'rerun'] as const)('at once cause one run (%s)', async (whenAbandoned) => {
    const order = newOrder(whenAbandoned)
    const answers = await Promise.all(sendAll(order))
    const effects = await scene.effects(order)
    expect(effects).toHaveLength(1)
    const [fence] = effects
    const first = answers.filter(({ status, isReplayed }) => status === 201 && !isReplayed)
    expect(first).toHaveLength(1)
    for (const answer of answers) {
      if (answer.status === 201)
        expectResult(answer, order, { fence, isReplayed: answer !== first[0] })
      else expectInProgress(answer)
    }
    for (const answer of await Promise.all(sendAll(order)))
      expectReplayOf(first[0] as Answer, answer)
    expect(await scene.effects(order)).toEqual(effects)
  })

  it.each(['refuse', 'rerun'] as const)(
    'during the run are all in progress, and then all get its result (%s)',
    async (whenAbandoned) => {
      const order = newOrder(whenAbandoned)
      const others: Answer[] = []
      const sent = sendAll(order, 'after the write')
      const allOthers = new Promise<void>((resolve) => {
        for (const answer of sent) {
          void answer.then((settled) => {
            if (others.push(settled) === REQUESTS - 1) resolve()
          })
        }
      })
      await allOthers
      for (const answer of others.slice()) expectInProgress(answer)
      for (const receiver of receivers) receiver.goOn()
      const first = (await Promise.all(sent)).find(({ status }) => status === 201) as Answer
      await scene.expectWritten(order, first)
      const replays = await Promise.all(sendAll(order))
      expect(new Set(replays.map(({ raw }) => raw)).size).toBe(1)
      for (const replay of replays) expectReplayOf(first, replay)
      expect(await scene.effects(order)).toHaveLength(1)
    },
  )
})

function expectInProgress(answer: Answer): void {
  expect(answer).toMatchObject({
    status: 409,
    problem: 'request-in-progress',
    retryAfter: LEFT_OF_LEASE,
  })
}
