import { setTimeout as sleep } from 'node:timers/promises'
import { serviceAuth } from 'express-service-auth'
import { reportOf, serviceFetch } from 'express-service-auth/client'
import { expect, it, onTestFinished } from 'vitest'
import { makeSigningKey, tokenFrom, withKid } from '../../support/issuer/signing-keys.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { behind, startReceiver } from '../../support/receiver/receiver.js'

it('a caller outlasts a rotation while ten tokens a second name random keys', async () => {
  const issuer = await createTestIssuer()
  const auth = serviceAuth(issuer.policy())
  const receiver = await startReceiver(behind(auth))
  const url = `http://127.0.0.1:${receiver.port}`
  const forged = tokenFrom(makeSigningKey('forged'), { now: Date.now() })
  const seen = new Set<number>()
  const asked: Promise<unknown>[] = []
  const ask = async (): Promise<void> => {
    const { status } = await receiver.call(withKid(forged, `random-${Math.random()}`))
    seen.add(status)
  }
  const flood = setInterval(() => asked.push(ask()), 100)
  onTestFinished(async () => {
    clearInterval(flood)
    await Promise.all(asked)
    auth.close()
    await issuer.close()
  })
  await auth.ready()
  await expect.poll(() => [...seen].sort(), { timeout: 20_000 }).toEqual([401, 503])

  issuer.rotate()
  const call = serviceFetch({ token: async () => issuer.token() }, { origins: [url] })
  const response = await call(url)
  expect(response.status).toBe(200)
  const statuses = reportOf(response).attempts.map(({ status }) => status)
  expect(statuses.slice(0, -1)).toEqual(statuses.slice(1).map(() => 503))
  expect(statuses.length).toBeGreaterThan(1)
  await sleep(200)
})
