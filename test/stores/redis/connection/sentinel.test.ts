import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { startSentinel } from '../../../support/redis/redis-sentinel.js'
import { until } from '../../../support/until.js'
import { answers, begin, MAJORS, requestFor, retryOf, started, storeOn } from '../kit.js'

describe.each(MAJORS)('a store behind sentinels, through $major', ({ RedisOfRelease }) => {
  it('forgets no reservation that a replica has when the primary dies', async () => {
    const group = await started(startSentinel())
    const users = new RedisOfRelease({
      sentinels: [...group.sentinels],
      name: group.name,
      role: 'slave',
      lazyConnect: true,
    })
    // A reservation may have to wait for the count of the replicas of the one before it, too.
    const store = storeOn(users, { timeoutMs: 5000, replicas: { min: 2, timeoutMs: 1000 } })
    await until('the store answers', () => answers(store))
    await expect(store.check()).resolves.toEqual([])
    const request = requestFor({ leaseMs: 120_000 })
    const id = randomUUID()
    const run = await begin(store, request)
    expect(await store.consume(id, 120_000)).toBe(true)

    await group.killPrimary()
    const survivor = storeOn(users, { timeoutMs: 2000 })
    await until('a replica has taken over', () => answers(survivor))
    expect(await survivor.consume(id, 120_000)).toBe(false)
    expect((await survivor.reserve(retryOf(request))).outcome).toBe('running')
    await until('the first store has come along', () => store.renew(run).catch(() => false))
    // Two replicas are asked for, and one is left. Until that one follows and the connection for
    // reservations has come along too, they are refused for other reasons.
    await until('one replica of two acknowledges', () =>
      store.reserve(requestFor()).then(
        () => false,
        ({ message }: Error) => message.includes('1 of 2 replicas'),
      ),
    )
  }, 60_000)
})
