import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectReplayOf } from './answers.js'
import type { ReceiverProcess } from './receiver-process.js'
import { newOrder, openScene, type Scene } from './scene.js'

const MINUTE_MS = 60_000
/** What the receivers allow for. */
const TOLERANCE_SECONDS = 60

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene.close())

const CLOCKS = ['right', 'a minute fast', 'a minute slow'] as const
type Clock = (typeof CLOCKS)[number]
const ERROR_MS: Readonly<Record<Clock, number>> = {
  right: 0,
  'a minute fast': MINUTE_MS,
  'a minute slow': -MINUTE_MS,
}

const receivers = new Map<Clock, ReceiverProcess>()
beforeAll(async () => {
  const launch = async (clock: Clock): Promise<void> => {
    receivers.set(clock, await scene.launch({ clockErrorMs: ERROR_MS[clock] }))
  }
  await Promise.all(CLOCKS.map(launch))
})
const receiverWith = (clock: Clock): ReceiverProcess => {
  const receiver = receivers.get(clock)
  if (receiver === undefined) throw new Error('not launched')
  return receiver
}

const PAIRS = CLOCKS.flatMap((one) =>
  CLOCKS.filter((another) => another !== one).map((another) => [one, another] as const),
)

describe.each(PAIRS)('Two receivers, the first %s, the second %s', (firstClock, secondClock) => {
  let first: ReceiverProcess
  let second: ReceiverProcess
  const [firstError, secondError] = [ERROR_MS[firstClock], ERROR_MS[secondClock]]
  beforeAll(() => {
    first = receiverWith(firstClock)
    second = receiverWith(secondClock)
  })

  it('let one of many uses of a token at once pass', async () => {
    const token = scene.issuer.token()
    const order = newOrder('refuse')
    const sent = Array.from({ length: 20 }, (_, index) =>
      scene.send(index % 2 === 0 ? first : second, order, { token }),
    )
    const statuses = (await Promise.all(sent.map(({ answer }) => answer))).map(
      ({ status }) => status,
    )
    expect(statuses.filter((status) => status === 201)).toHaveLength(1)
    expect(statuses.filter((status) => status === 401)).toHaveLength(19)
  })

  it('remember a token for as long as either takes it, however late it was used', async () => {
    // The first accepts it for a few seconds more, a slower one for a minute or two beyond those.
    const firstNow = Math.floor((Date.now() + firstError) / 1000)
    const exp = firstNow - TOLERANCE_SECONDS + 10
    const known = new Set(await tokenKeys())
    const token = scene.issuer.token({ iat: exp - 300, exp })
    expect((await scene.send(first, newOrder('refuse'), { token }).answer).status).toBe(201)
    const added = (await tokenKeys()).filter((key) => !known.has(key))
    expect(added).toHaveLength(1)
    const ttlMs = Number(await scene.redis.command('PTTL', added[0] ?? ''))
    const acceptedForMs = (exp + TOLERANCE_SECONDS) * 1000 - (Date.now() + secondError)
    expect(ttlMs).toBeGreaterThanOrEqual(acceptedForMs)
    expect((await scene.send(second, newOrder('refuse'), { token }).answer).status).toBe(401)
    // Not because it has expired: another of the same age passes where the clock is slower.
    const unused = scene.issuer.token({ iat: exp - 300, exp })
    const { status } = await scene.send(second, newOrder('refuse'), { token: unused }).answer
    expect(status).toBe(secondError < firstError ? 201 : 401)
  })

  it('run a write once, and both know its result', async () => {
    const order = newOrder('rerun')
    const exchange = scene.send(first, order, { stopAt: 'after the write' })
    await first.reached('after the write')
    const inProgress = await scene.send(second, order).answer
    expect(inProgress).toMatchObject({
      problem: 'request-in-progress',
      retryAfter: expect.stringMatching(/^[1-3]$/),
    })
    first.goOn()
    const answer = await exchange.answer
    await scene.expectWritten(order, answer)
    for (const receiver of [second, first]) {
      expectReplayOf(answer, await scene.send(receiver, order).answer)
    }
    expect(await scene.effects(order)).toHaveLength(1)
  })
})

async function tokenKeys(): Promise<string[]> {
  const script = "return table.concat(redis.call('KEYS', 'esa:t:*'), ' ')"
  return (await scene.redis.command('EVAL', script, '0')).split(' ')
}
