import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { promisify } from 'node:util'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import express from 'express'
import { ServiceAuthError } from 'express-service-auth'
import pino from 'pino'
import { expect, it, vi } from 'vitest'
import { announceDecision } from '../../../../src/base/decision/decision-event.js'
import { announceIdempotency } from '../../../../src/base/decision/idempotency-event.js'
import { announceKeySet } from '../../../../src/base/decision/key-set-event.js'
import { announceDenylist, callStore } from '../../../../src/base/decision/store-event.js'
import { launch } from '../../process/launch.js'
import { startReceiver } from '../../receiver/receiver.js'
import { knowSecret, searchedExporter, searchedLogger } from '../index.js'

// Each test puts a new secret into another kind of output.

function secret(): string {
  const made = randomUUID()
  knowSecret('an API key', made)
  return made
}

it('decision', () => {
  announceDecision([], { outcome: 'accepted', by: 'serviceAuth', keyId: secret() })
})

it('onDecision', () => {
  announceDecision([() => {}], { outcome: 'accepted', by: 'serviceAuth', caller: secret() })
})

it('keys', () => {
  announceKeySet(`https://core.example/${secret()}`, { type: 'expired' })
})

it('idempotency', () => {
  announceIdempotency(() => ({
    by: 'requireIdempotencyKey',
    caller: 'billing',
    outcome: 'refused',
    reason: 'key_reused',
    status: 422,
    record: secret(),
  }))
})

it('denylist', () => {
  announceDenylist(() => [{ type: 'stale', reason: secret() as never }])
})

it('store', async () => {
  await callStore(secret() as never, async () => true)
})

it('console', () => {
  console.warn('refused: %s', secret())
})

it('console, an object', () => {
  console.error({ headers: { authorization: secret() } })
})

it('console, spied on', () => {
  vi.spyOn(console, 'info').mockImplementation(() => {})
  console.info(secret())
})

it('pino', () => {
  const logger = searchedLogger(pino({}, { write() {} }))
  logger.warn({ key: secret() }, 'refused')
})

it('a span', async () => {
  const exporter = searchedExporter(new InMemorySpanExporter())
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  const span = provider.getTracer('test').startSpan('request')
  span.setAttribute('express_service_auth.key_id', secret())
  span.end()
  await provider.shutdown()
})

it('a metric', async () => {
  const exporter = searchedExporter(new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE))
  const provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] })
  provider.getMeter('test').createCounter('decisions').add(1, { 'error.type': secret() })
  await provider.shutdown()
})

it('an error', () => {
  expect(new ServiceAuthError('unfit', secret())).toBeInstanceOf(Error)
})

it('an error that is thrown', () => {
  const thrower = (): never => {
    throw new TypeError(secret())
  }
  expect(thrower).toThrow(TypeError)
})

it('the cause of an error that is rejected', async () => {
  const cause = Object.defineProperty(new Error('WRONGPASS'), 'command', {
    value: { name: 'auth', args: [secret()] },
    enumerable: false,
  })
  const fault = new ServiceAuthError('unavailable', 'Redis is unreachable', { cause })
  await expect(Promise.reject(fault)).rejects.toThrow('unreachable')
})

it('an error that comes to next', async () => {
  const error = new Error('failed', { cause: { args: [Buffer.from(secret())] } })
  const receiver = await startReceiver({
    express,
    mount: (app) => app.use((_request, _response, next) => next(error)),
  })
  await receiver.call()
})

it('stdout', () => {
  process.stdout.write(`${secret()}\n`)
})

it('stderr', () => {
  process.stderr.write(Buffer.from(`${secret()}\n`))
})

const printing = (stream: string, text: string): string[] => [
  '-e',
  `process.${stream}.write(${JSON.stringify(text)})`,
]

it('stdout of a program that is spawned', async () => {
  const child = spawn(process.execPath, printing('stdout', secret()))
  child.stdout.resume()
  await once(child, 'close')
})

it('stderr of a program that is read step by step', async () => {
  const child = spawn(process.execPath, printing('stderr', secret()))
  for await (const chunk of child.stderr) expect(chunk.length).toBeGreaterThan(0)
})

it('stdout of a program that is run', async () => {
  await promisify(execFile)(process.execPath, printing('stdout', secret()))
})

it('stdout of a program that is launched', async () => {
  const { child, kill } = await launch(new URL('./printing.child.ts', import.meta.url), {
    args: [secret()],
  })
  if (child.stdout?.readableLength === 0) await once(child.stdout, 'data')
  await kill()
})
