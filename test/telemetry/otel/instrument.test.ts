import { channel } from 'node:diagnostics_channel'
import { type Meter, metrics, trace } from '@opentelemetry/api'
import express from 'express'
import { memoryStore } from 'express-service-auth'
import { type InstrumentOptions, instrument } from 'express-service-auth/otel'
import { expect, it, onTestFinished } from 'vitest'
import { issuer } from '../../support/issuer/issuer.js'
import { collectUnhandledErrors } from '../../support/observe/unhandled-errors.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { authFor, startBehind, startOrders } from '../../support/receiver/receiver.js'
import { leaveChannels } from '../../support/secret-search/index.js'
import { throwing } from '../../support/throwing.js'
import { meter, traceRequests } from './telemetry.js'

leaveChannels()

const CHANNELS = ['decision', 'keys', 'idempotency', 'store'].map((name) =>
  channel(`express-service-auth:${name}`),
)
const areObserved = (): boolean[] => CHANNELS.map(({ hasSubscribers }) => hasSubscribers)

it('listens and asks for states until it is stopped', async () => {
  const auth = authFor(issuer.policy())
  let asked = 0
  const health = (): ReturnType<typeof auth.health> => {
    asked += 1
    return auth.health()
  }
  const { stop, series } = meter({ serviceAuth: { health } })
  const receiver = await startBehind(express, auth)
  await receiver.call(issuer.token())
  expect(areObserved()).toEqual([true, true, true, true])
  await series('key_set.keys')
  expect(asked).toBe(1)
  stop()
  stop()
  expect(areObserved()).toEqual([false, false, false, false])
  await receiver.call(issuer.token())
  expect(await series('decisions')).toMatchObject([{ value: 1 }])
  expect(asked).toBe(1)
})

it('takes the global meter provider where it is given none', async () => {
  const { meterProvider, series, stop } = meter()
  stop()
  metrics.setGlobalMeterProvider(meterProvider)
  onTestFinished(() => metrics.disable())
  const { stop: stopGlobal } = instrument()
  onTestFinished(stopGlobal)
  const receiver = await startBehind(express, authFor(issuer.policy()))
  await receiver.call()
  expect(await series('decisions')).toMatchObject([{ value: 1 }])
})

it('costs nothing but itself where there is no SDK', async () => {
  const { stop } = instrument({ serviceAuth: authFor(issuer.policy()) })
  onTestFinished(stop)
  const receiver = await startBehind(express, authFor(issuer.policy()))
  expect((await receiver.call(issuer.token())).status).toBe(200)
})

it('keeps the faults of a meter and of a span away from requests', async () => {
  const unhandled = collectUnhandledErrors()
  const fail = throwing(new Error('a fault of telemetry'))
  const instruments = { add: fail, record: fail }
  const meterProvider = {
    getMeter: () =>
      ({ createCounter: () => instruments, createHistogram: () => instruments }) as never as Meter,
  }
  const { stop } = instrument({ meterProvider })
  onTestFinished(stop)
  const { middleware } = traceRequests()
  const receiver = await startOrders({
    express,
    store: memoryStore(),
    outer: [
      middleware,
      (_request, _response, next) => {
        Object.assign(trace.getActiveSpan() ?? {}, { setAttributes: fail })
        next()
      },
    ],
    handler: (_req, res) => void res.status(201).json({}),
  })
  const key = newKey()
  expect((await call(receiver.port, { key })).status).toBe(201)
  expect((await call(receiver.port, { key })).status).toBe(201)
  expect((await call(receiver.port)).status).toBe(400)
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled).toEqual([])
})

it.each<[string, unknown, RegExp]>([
  ['an unknown option', { span: true }, /^instrument options: span is not an option$/],
  ['a serviceAuth without health', { serviceAuth: {} }, /serviceAuth must be what serviceAuth/],
  ['a list with something else', { serviceAuth: [{ health() {} }, 1] }, /serviceAuth must be/],
  ['no meter provider', { meterProvider: 'sdk' }, /meterProvider must be a MeterProvider/],
  ['spans that are no flag', { spans: 'yes' }, /spans must be true or false/],
  ['no options', null, /the options must be an object/],
])('takes no %s', (_name, options, message) => {
  expect(() => instrument(options as InstrumentOptions)).toThrow(TypeError)
  expect(() => instrument(options as InstrumentOptions)).toThrow(message)
  expect(areObserved()).toEqual([false, false, false, false])
})
