import { setImmediate as nextTurn } from 'node:timers/promises'
import express, { type RequestHandler } from 'express'
import { describe, expect, it } from 'vitest'
import { reportOf } from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import { issuer } from '../../support/issuer/issuer.js'
import {
  FAULTY_SHARE,
  faultOf,
  isDoneBefore,
  loseNextReply,
  type ReplyFault,
} from '../../support/network/lost-reply.js'
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js'
import { openOrders } from '../../support/receiver/order-receiver.js'
import { MEMORY, REDIS } from '../../support/stores/store-factories.js'

/** Each lane is a caller with a wire of its own, which calls one after the other. */
const LANES = 5
const CALLS = 20

interface Asked {
  readonly order: string
  readonly lane: number
  readonly fault: ReplyFault
}

describe.concurrent.each([MEMORY, REDIS])(
  'replies lost before, in and after the write, $name',
  ({ open }) => {
    it('a hundred calls: one effect each, and the right result', async () => {
      const { store, close } = await open()
      const proxies: TcpProxy[] = []
      const effects = new Map<string, number>()
      const handler: RequestHandler = async (request, response) => {
        const { order, lane, fault } = request.body as Asked
        if (fault === 'in') proxies[lane]?.cut()
        await nextTurn()
        const count = (effects.get(order) ?? 0) + 1
        effects.set(order, count)
        response.status(201).json({ order, count })
      }
      const receiver = await openOrders({ express, store, handler })
      for (let lane = 0; lane < LANES; lane += 1) {
        proxies.push(await startTcpProxy({ host: '127.0.0.1', port: receiver.port }))
      }

      async function drive(proxy: TcpProxy, lane: number): Promise<number> {
        const token = issuer.token()
        const origin = `http://127.0.0.1:${proxy.port}`
        // Asked before each attempt: the fault is over when the second one begins.
        const source = {
          async token() {
            if (asked > 0) await proxy.restore()
            asked += 1
            return token
          },
        }
        const call = serviceFetch(source, { origins: [origin], idempotencyKey: 'auto' })
        let asked = 0
        let attempts = 0
        for (let made = 0; made < CALLS; made += 1) {
          const order = `${lane}-${made}`
          const fault = faultOf(made)
          asked = 0
          await loseNextReply(proxy, fault)
          const body = JSON.stringify({ order, lane, fault })
          const headers = { 'content-type': 'application/json' }
          const response = await call(`${origin}/orders/${order}`, {
            method: 'POST',
            body,
            headers,
          })
          expect([response.status, await response.json()]).toEqual([201, { order, count: 1 }])
          const report = reportOf(response)
          expect([fault, report.replayed]).toEqual([fault, isDoneBefore(fault)])
          attempts += report.attempts.length
        }
        return attempts
      }

      try {
        const attempts = await Promise.all(proxies.map(drive))
        expect(effects.size).toBe(LANES * CALLS)
        expect(receiver.handled).toBe(LANES * CALLS)
        const faults = LANES * CALLS * FAULTY_SHARE
        const all = attempts.reduce((sum, count) => sum + count, 0)
        expect(all).toBeGreaterThanOrEqual(LANES * CALLS + faults)
      } finally {
        await Promise.all(proxies.map((proxy) => proxy.close()))
        await receiver.close()
        await close()
      }
    })
  },
)
