import { memoryStore, type ReservationRequest } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { type OrdersOptions, openOrders } from '../../support/receiver/order-receiver.js'

const DIGEST = /^[\w-]{24}$/

describe.each(EXPRESS_MAJORS)('A request under a key, $major', ({ express }) => {
  const kept = memoryStore()
  afterAll(() => kept.close())

  /** What the store is asked for, request by request. */
  async function reservations(
    options: OrdersOptions['options'],
    requests: Parameters<typeof call>[1][],
  ): Promise<ReservationRequest[]> {
    const asked: ReservationRequest[] = []
    const reserve = (request: ReservationRequest) => {
      asked.push(request)
      return kept.reserve(request)
    }
    const receiver = await openOrders({
      express,
      store: {
        reserve,
        renew: (run) => kept.renew(run),
        settle: (...args) => kept.settle(...args),
      },
      options: { ...options },
      handler: (_req, res) => void res.json({}),
    })
    for (const request of requests) await call(receiver.port, request)
    await receiver.close()
    return asked
  }

  it('reaches the store in digests alone', async () => {
    const key = newKey()
    const secret = 'secret | of one’s own'
    const options = { operation: () => secret, fingerprint: () => secret }
    const [asked] = await reservations(options, [{ key, body: '{"a":"secret"}' }])
    expect(asked).toMatchObject({
      recordId: expect.stringMatching(DIGEST),
      fingerprint: expect.stringMatching(DIGEST),
      leaseMs: 30_000,
      retentionMs: 86_400_000,
      rerunAbandoned: false,
    })
    expect(JSON.stringify(asked)).not.toContain('secret')
    expect(JSON.stringify(asked)).not.toContain(key)
  })

  it('has another owner every time, and else the same names', async () => {
    const request = { key: newKey(), body: '{"a":1}' }
    const [first, second] = await reservations({}, [request, request])
    expect(second).toEqual({ ...first, owner: second?.owner })
    expect(second?.owner).not.toBe(first?.owner)
  })
})
