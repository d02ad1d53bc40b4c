import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import type { ServiceCallError } from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import { TokenSourceError } from '../../../src/client/token-source/token-source-error.js'
import { sourceAt } from '../kit.js'
import { answers, hangsUp, mints, startLyingCore } from '../lying-core.js'
import { ok, startService } from '../scripted-service.js'

const CALLS = 50
const BUSY = answers(429, 'slow down', { 'retry-after': '60' })

/** What as many writes without a key come to, each with a token of its own. */
async function outcomesOf(call: typeof fetch, url: string): Promise<readonly unknown[]> {
  const each = async (_: unknown, index: number): Promise<unknown> => {
    const answer = call(`${url}/orders/${index}`, { method: 'POST', body: '{}' })
    return answer.then(
      ({ status }) => status,
      (error: unknown) => error,
    )
  }
  return await Promise.all(Array.from({ length: CALLS }, each))
}

describe.concurrent('while no token can be had for a reason that passes', () => {
  it.for([
    ['hangs up', hangsUp],
    ['answers 500', answers(500, 'Internal Error')],
    ['is busy', BUSY],
  ] as const)('writes wait for a core that %s for 3 s', async ([, lie], { onTestFinished }) => {
    const service = await startService(ok)
    const core = await startLyingCore(lie, onTestFinished)
    const source = sourceAt(core.url, { singleUse: true }, onTestFinished)
    const call = serviceFetch(source, { origins: [service.url] })
    const outcomes = outcomesOf(call, service.url)
    await sleep(3000)
    core.lie(mints())
    expect(new Set(await outcomes)).toEqual(new Set([200]))
    expect(service.requests).toHaveLength(CALLS)
    expect(new Set(service.tokens).size).toBe(CALLS)
  })

  it('the report counts each attempt, and the last failure is thrown', async () => {
    const service = await startService(ok)
    const cause = new TokenSourceError('core_failed', { coreStatus: 503 })
    const token = vi.fn().mockRejectedValue(cause)
    const call = serviceFetch(
      { token },
      { origins: [service.url], deadlineMs: 3000, maxAttempts: 3 },
    )
    const error: unknown = await call(service.url, { method: 'POST' }).catch((thrown) => thrown)
    expect(error).toMatchObject({ name: 'ServiceCallError', code: 'token', cause })
    const { attempts, totalMs } = (error as ServiceCallError).report
    expect(attempts).toEqual([
      { error: 'token', waitedMs: 0 },
      { error: 'token', waitedMs: expect.any(Number) },
      { error: 'token', waitedMs: expect.any(Number) },
    ])
    const waitedMs = attempts.reduce((sum, attempt) => sum + attempt.waitedMs, 0)
    expect(waitedMs).toBeGreaterThan(1000)
    expect(totalMs).toBeGreaterThan(waitedMs - 5)
    expect(totalMs).toBeLessThan(3000)
    expect(token).toHaveBeenCalledTimes(3)
    expect(service.requests).toEqual([])
  })

  it('an abort ends the wait', async () => {
    const reason = new Error('no more')
    const ending = new AbortController()
    const token = async (): Promise<string> => {
      setTimeout(() => ending.abort(reason), 50)
      throw new TokenSourceError('core_unreachable')
    }
    // The first wait is more than half a minute.
    const options = { origins: ['https://orders.example'], deadlineMs: 600_000 }
    const call = serviceFetch({ token }, options)
    await expect(call('https://orders.example', { signal: ending.signal })).rejects.toBe(reason)
  })
})

const LASTING = ['core_rejected', 'api_key_refused', 'token_unexpected', 'closed'] as const
it.each(LASTING)('%s does not pass by itself, and ends the call at once', async (code) => {
  const service = await startService(ok)
  const token = vi.fn().mockRejectedValue(new TokenSourceError(code))
  const call = serviceFetch({ token }, { origins: [service.url] })
  const message = `no service token: ${code}`
  await expect(call(service.url)).rejects.toMatchObject({ code: 'token', message })
  expect(token).toHaveBeenCalledTimes(1)
})
