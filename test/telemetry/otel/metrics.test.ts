import { createHash } from 'node:crypto'
import { ValueType } from '@opentelemetry/api'
import { DataPointType } from '@opentelemetry/sdk-metrics'
import express from 'express'
import {
  acceptOneOf,
  memoryStore,
  requirePermissions,
  requireSingleUse,
  serviceCredential,
  sessionCredential,
} from 'express-service-auth'
import { expect, it } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { authFor, startBehind, startOrders } from '../../support/receiver/receiver.js'
import { watchedStore } from '../../support/stores/watched-store.js'
import { until } from '../../support/until.js'
import { issuerBehindSecretQuery } from '../secret-query.js'
import { meter, type Series } from './telemetry.js'

const seriesOf = (value: unknown, attributes: Series['attributes']): Series => ({
  attributes,
  value,
})

it('counts the decisions of each guard, by reason and by callers that the policy names', async () => {
  const { series } = meter()
  const receiver = await startBehind(
    express,
    authFor(issuer.policy({ denylist: { callers: ['reporting'] } })),
    requirePermissions('orders:read'),
    requireSingleUse({ store: memoryStore() }),
  )
  const token = issuer.token({ permissions: ['orders:read'] })
  await receiver.call(token)
  await receiver.call(token)
  await receiver.call(issuer.token({ permissions: [] }))
  await receiver.call(issuer.token({ sub: 'stranger' }))
  await receiver.call(issuer.token({ sub: 'reporting' }))
  await receiver.call()
  const refused = (guard: string, reason: string): Series['attributes'] => ({
    guard,
    outcome: 'refused',
    'error.type': reason,
  })
  const billing = { 'service.peer.name': 'billing' }
  const accepted = { outcome: 'accepted', confirmation: 'none', ...billing }
  expect(await series('decisions')).toEqual([
    seriesOf(3, { guard: 'serviceAuth', ...accepted }),
    seriesOf(2, { guard: 'requirePermissions', ...accepted }),
    seriesOf(1, { guard: 'requireSingleUse', ...accepted }),
    seriesOf(1, { ...refused('requireSingleUse', 'token_replayed'), ...billing }),
    seriesOf(1, { ...refused('requirePermissions', 'permission_missing'), ...billing }),
    seriesOf(1, refused('serviceAuth', 'caller_not_approved')),
    seriesOf(1, refused('serviceAuth', 'caller_denied')),
    seriesOf(1, refused('serviceAuth', 'credentials_missing')),
  ])
})

it('counts what the tokens of each caller are bound to', async () => {
  const { series } = meter()
  const certificate = Buffer.of(0x30, 0)
  const dpop = { baseUrls: ['https://orders.test'] }
  const senderConstraint = { mtls: () => certificate, dpop }
  const callers = ['billing', 'reporting']
  const receiver = await startBehind(express, authFor(issuer.policy({ senderConstraint, callers })))
  const thumbprint = createHash('sha256').update(certificate).digest('base64url')
  for (const sub of callers) {
    const { token, proof } = issuer.boundToken({ sub })
    const request = { method: 'GET', url: 'https://orders.test/' }
    const headers = { authorization: `DPoP ${token}`, dpop: proof(request) }
    expect((await receiver.call(undefined, { headers })).status).toBe(200)
    await receiver.call(issuer.token({ sub, cnf: { 'x5t#S256': thumbprint } }))
    await receiver.call(issuer.token({ sub }))
  }
  const accepted = { guard: 'serviceAuth', outcome: 'accepted' }
  expect(await series('decisions')).toEqual(
    callers.flatMap((caller) =>
      ['dpop', 'certificate', 'none'].map((confirmation) =>
        seriesOf(1, { ...accepted, confirmation, 'service.peer.name': caller }),
      ),
    ),
  )
})

it('names the choice of acceptOneOf, and its caller where that is a service', async () => {
  const { series } = meter()
  const gate = acceptOneOf([
    { name: 'service', ...serviceCredential(authFor(issuer.policy())) },
    { name: 'user', ...sessionCredential((_request, _response, next) => next()) },
  ])
  const receiver = await startBehind(express, gate)
  await receiver.call(issuer.token())
  await receiver.call(issuer.token({}, { version: '5' }))
  const guard = { guard: 'acceptOneOf' }
  const billing = { 'service.peer.name': 'billing' }
  const accepted = { outcome: 'accepted', confirmation: 'none', ...billing }
  expect(await series('decisions')).toEqual([
    seriesOf(1, { guard: 'serviceAuth', ...accepted }),
    seriesOf(1, { ...guard, ...accepted, credential: 'service' }),
    seriesOf(1, {
      ...guard,
      outcome: 'refused',
      credential: 'user',
      'error.type': 'identity_missing',
    }),
  ])
})

it('has no series for what a caller chose, whatever it was refused for', async () => {
  const { metrics } = meter()
  const sub = 'a-text-of-its-choice'
  const denied = `${sub}-that-is-denied`
  const receiver = await startBehind(
    express,
    authFor(issuer.policy({ denylist: { tokenIds: ['x-jti'], callers: [denied] } })),
  )
  for (const claims of [
    { sub },
    { sub: denied },
    { sub, jti: 'x-jti' },
    { sub, exp: 1 },
    { sub, aud: sub },
    { sub, permissions: [sub] },
    { sub, token_type: sub },
  ]) {
    expect((await receiver.call(issuer.token(claims))).status).not.toBe(200)
  }
  await receiver.call(issuer.token(), { headers: { 'x-request-id': sub } })
  expect(JSON.stringify(await metrics())).not.toContain(sub)
})

it('says that nothing could be decided, and counts fetches by the address without its query', async () => {
  const { own, keySet } = await issuerBehindSecretQuery()
  const { jwksUri } = own
  const { series } = meter()
  const auth = authFor(own.policy({ keySet }))
  const receiver = await startBehind(express, auth)
  own.down()
  expect((await receiver.call(own.token())).status).toBe(503)
  const undecided = { outcome: 'undecided', 'error.type': 'key_set_unavailable' }
  expect(await series('decisions')).toEqual([seriesOf(1, { guard: 'serviceAuth', ...undecided })])
  own.up()
  await keySet.ready()
  expect(await series('key_set.fetches')).toEqual([
    seriesOf(1, { 'key_set.url': jwksUri, outcome: 'failed', 'error.type': 'network' }),
    seriesOf(1, { 'key_set.url': jwksUri, outcome: 'fetched' }),
  ])
})

it('counts reservations, runs and the time of the calls of a store of the user', async () => {
  const { series, metrics } = meter()
  const store = watchedStore(memoryStore())
  const receiver = await startOrders({
    express,
    store,
    handler: (req, res) => void (req.query['end'] ? res.destroy() : res.status(201).json({})),
  })
  const key = newKey()
  await call(receiver.port)
  await call(receiver.port, { key })
  await call(receiver.port, { key })
  await call(receiver.port, { key: newKey(), path: '/orders/1?end=1' })
  await until('the run is over', async () => store.endings.length === 2)
  store.fail('reserve')
  await call(receiver.port, { key })
  const peer = { 'service.peer.name': 'billing' }
  expect(await series('reservations')).toEqual([
    seriesOf(1, { outcome: 'key_missing', ...peer }),
    seriesOf(2, { outcome: 'reserved', ...peer }),
    seriesOf(1, { outcome: 'replayed', ...peer }),
    seriesOf(1, { outcome: 'store_unavailable', ...peer }),
  ])
  expect(await series('runs')).toEqual([
    seriesOf(1, { 'run.end': 'result_kept' }),
    seriesOf(1, { 'run.end': 'abandoned' }),
  ])
  const durations = (await series('store.operation.duration')).map(({ attributes, value }) => [
    attributes,
    (value as { count: number }).count,
  ])
  expect(durations).toEqual([
    [{ 'store.operation': 'reserve' }, 3],
    [{ 'store.operation': 'settle' }, 2],
    [{ 'store.operation': 'reserve', 'error.type': 'store_unavailable' }, 1],
  ])
  const found = await metrics()
  const histogram = found.find(({ descriptor }) => descriptor.name.endsWith('duration'))
  if (histogram?.dataPointType !== DataPointType.HISTOGRAM) throw new Error('no histogram')
  expect(histogram.dataPoints[0]?.value.buckets.boundaries).toEqual([
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5,
  ])
  // Milliseconds would be far above a second.
  expect(histogram.dataPoints[0]?.value.sum).toBeLessThan(1)
  expect(histogram.dataPoints[0]?.value.sum).toBeGreaterThan(0)
  const units = found.map(({ descriptor }) => [
    descriptor.name.replace('express_service_auth.', ''),
    descriptor.unit,
    descriptor.valueType,
  ])
  expect(units).toEqual([
    ['decisions', '{decision}', ValueType.DOUBLE],
    ['reservations', '{reservation}', ValueType.DOUBLE],
    ['runs', '{run}', ValueType.DOUBLE],
    ['store.operation.duration', 's', ValueType.DOUBLE],
  ])
})
