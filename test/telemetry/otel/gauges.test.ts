import { DataPointType } from '@opentelemetry/sdk-metrics'
import express from 'express'
import { type KeySetHealth, serviceAuth } from 'express-service-auth'
import { expect, it, onTestFinished } from 'vitest'
import type { ObservedServiceAuth } from '../../../src/telemetry/otel/gauges.js'
import type { DenylistHealth } from '../../../src/verification/denylist/live-denylist.js'
import { createTestIssuer } from '../../support/issuer/test-issuer.js'
import { authFor, startBehind } from '../../support/receiver/receiver.js'
import { meter } from './telemetry.js'

const keySet: KeySetHealth = { state: 'fresh', ageSeconds: 3, keys: ['a', 'b'] }

const policyWith = (health: ReturnType<ObservedServiceAuth['health']>): ObservedServiceAuth => ({
  health: () => health,
})

const denylist = (entries: number, ageSeconds?: number): DenylistHealth => ({
  state: ageSeconds === undefined ? 'cold' : 'fresh',
  version: 1,
  entries,
  ...(ageSeconds !== undefined && { ageSeconds }),
})

it('shows the age and the keys of a key set under its address, before its first event', async () => {
  const issuer = await createTestIssuer()
  onTestFinished(() => issuer.close())
  const jwksUri = `${issuer.jwksUri}?key=s3cret`
  const auth = authFor(issuer.policy({ keySet: undefined, jwksUri }))
  const { series, metrics } = meter({ serviceAuth: auth })
  const attributes = { 'key_set.url': issuer.jwksUri }
  expect(await series('key_set.age')).toEqual([])
  expect(await series('key_set.keys')).toEqual([{ attributes, value: 0 }])
  const shared = authFor(issuer.policy())
  const both = meter({ serviceAuth: [shared] })
  await shared.ready()
  const receiver = await startBehind(express, shared)
  await receiver.call(issuer.token())
  expect(await both.series('key_set.keys')).toEqual([
    { attributes, value: shared.health().keySet.keys.length },
  ])
  const [age] = await both.series('key_set.age')
  expect(age?.attributes).toEqual(attributes)
  expect(age?.value).toBeGreaterThanOrEqual(0)
  expect(JSON.stringify(await metrics())).not.toContain('s3cret')
})

it('shows the key set of each of several issuers', async () => {
  const issuers = await Promise.all([createTestIssuer(), createTestIssuer()])
  onTestFinished(async () => void (await Promise.all(issuers.map((issuer) => issuer.close()))))
  const auth = serviceAuth(issuers.map((issuer) => issuer.policy()))
  onTestFinished(() => auth.close())
  await auth.ready()
  const { series } = meter({ serviceAuth: auth })
  const shown = await series('key_set.keys')
  expect(shown.map(({ attributes }) => attributes)).toEqual(
    issuers.map(({ jwksUri }) => ({ 'key_set.url': jwksUri })),
  )
})

it('shows denylists by their place in the policy, and the requests of the token cache', async () => {
  const serviceAuth = policyWith({
    keySet,
    denylists: [denylist(7, 1.5), denylist(0)],
    tokenCache: { hits: 5, misses: 2 },
  })
  const { series, metrics } = meter({ serviceAuth })
  const first = { 'denylist.index': 0 }
  const second = { 'denylist.index': 1 }
  expect(await series('denylist.age')).toEqual([{ attributes: first, value: 1.5 }])
  expect(await series('denylist.entries')).toEqual([
    { attributes: first, value: 7 },
    { attributes: second, value: 0 },
  ])
  expect(await series('token_cache.requests')).toEqual([
    { attributes: { result: 'hit' }, value: 5 },
    { attributes: { result: 'miss' }, value: 2 },
  ])
  const units = (await metrics()).map(({ descriptor: { name, unit }, dataPointType }) => [
    name.replace('express_service_auth.', ''),
    unit,
    dataPointType,
  ])
  expect(units).toEqual([
    ['key_set.age', 's', DataPointType.GAUGE],
    ['key_set.keys', '{key}', DataPointType.GAUGE],
    ['denylist.age', 's', DataPointType.GAUGE],
    ['denylist.entries', '{entry}', DataPointType.GAUGE],
    ['token_cache.requests', '{request}', DataPointType.SUM],
  ])
})

it('shows the worse of two values of one series, adds up requests, and skips what fails', async () => {
  const broken: ObservedServiceAuth = {
    health() {
      throw new Error('no health')
    },
  }
  const other: KeySetHealth = { state: 'stale', ageSeconds: 9, keys: ['a'] }
  const { series } = meter({
    serviceAuth: [
      policyWith({ keySet, denylists: [denylist(3, 1)], tokenCache: { hits: 1, misses: 1 } }),
      broken,
      policyWith({ keySet: other, denylists: [denylist(2, 0)] }),
      policyWith({ keySet, tokenCache: { hits: 2, misses: 3 } }),
    ],
  })
  const values = async (name: string): Promise<unknown[]> =>
    (await series(name)).map(({ value }) => value)
  expect(await values('key_set.age')).toEqual([9])
  expect(await values('key_set.keys')).toEqual([1])
  expect(await values('denylist.age')).toEqual([1])
  expect(await values('denylist.entries')).toEqual([2])
  expect(await values('token_cache.requests')).toEqual([3, 4])
})
