import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { POLL, REPORT } from '../../../../src/stores/redis/denylist/scripts.js'
import { until } from '../../../support/until.js'
import { ownRedis, proxyOf } from '../kit.js'
import { entryOf, openDenylist, refuses, untilRefused, untilState } from './denylist-kit.js'

const REPLY_MS = 150
/** Reports of news are so far apart. */
const REPORT_PAUSE_MS = 2100
/** No other script answers a number. */
const REPORT_ANSWER = ':1\r\n'

interface Asked {
  readonly sha: string
  readonly atMs: number
}

/** From each report to the next look, by the server's clock. */
const pausesOf = (asked: readonly Asked[]): number[] =>
  asked.flatMap(({ sha, atMs }, index) => {
    const next = asked.slice(index).find((later) => later.sha === POLL.sha)
    return sha === REPORT.sha && next !== undefined ? [next.atMs - atMs] : []
  })

it('a look does not wait for the answer to a report', async () => {
  const server = await ownRedis()
  const proxy = await proxyOf(server)
  const watching = new Redis({ port: server.port })
  // ioredis takes a command of others that comes together with the answer to MONITOR for a fault.
  await watching.ping()
  const monitor = await watching.monitor()
  onTestFinished(() => {
    watching.disconnect()
    monitor.disconnect()
  })
  const receiver = openDenylist(proxy)
  const desk = openDenylist(server)
  await receiver.ready()
  proxy.delayReplies(REPLY_MS)
  const asked: Asked[] = []
  monitor.on('monitor', (time: string, [, sha = '']: string[]) => {
    asked.push({ sha, atMs: Number(time) * 1000 })
  })
  for (const value of ['one', 'two']) {
    await sleep(REPORT_PAUSE_MS)
    await desk.deny(entryOf({ value }))
    await untilRefused(receiver, value)
  }
  await sleep(2 * REPLY_MS)
  // It would wait for `REPLY_MS` at least, each time.
  expect(Math.min(...pausesOf(asked))).toBeLessThan(REPLY_MS - 50)
})

it('a receiver that is cut off while it comes back is not said to apply what it lacks', async () => {
  const server = await ownRedis()
  const proxy = await proxyOf(server)
  const receiver = openDenylist(proxy)
  const desk = openDenylist(server)
  const seenSecondsAgo = async () => (await desk.receivers())[0]?.seenSecondsAgo ?? 0
  await desk.deny(entryOf({ value: 'one' }))
  await receiver.ready()
  await proxy.fail('refused')
  await untilState(receiver, 'stale')
  const { version } = await desk.deny(entryOf({ value: 'two' }))
  await until('a report is due', async () => (await seenSecondsAgo()) > REPORT_PAUSE_MS / 1000)
  // The answer to the look comes behind it.
  proxy.loseReply(REPORT_ANSWER, 'refused')
  await proxy.restore()
  await until('it has reported itself', async () => (await seenSecondsAgo()) < 1)
  const [listed] = await desk.receivers()
  expect(refuses(receiver, 'two')).toBe(false)
  expect(listed?.version).toBeLessThan(version)
  await proxy.restore()
  await untilRefused(receiver, 'two')
  await until('it says so', async () => (await desk.receivers())[0]?.version === version)
})
