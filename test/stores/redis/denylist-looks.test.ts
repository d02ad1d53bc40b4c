import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { POLL, REPORT } from '../../../src/stores/redis/denylist-scripts.js'
import { startRedis } from '../../support/redis.js'
import { startTcpProxy } from '../../support/tcp-proxy.js'
import { entryOf, openDenylist, untilRefused } from './denylist-kit.js'

const REPLY_MS = 150
/** Reports of news are so far apart. */
const REPORT_PAUSE_MS = 2100

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

test('a look does not wait for the answer to a report', async () => {
  const server = await startRedis()
  const proxy = await startTcpProxy(server)
  const monitor = await new Redis({ port: server.port }).monitor()
  onTestFinished(async () => {
    monitor.disconnect()
    await proxy.close()
    await server.stop()
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
