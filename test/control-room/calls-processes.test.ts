import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Callers, openCallers } from '../../example-app/control-room/calls/callers.js'
import { type Catalogue, openCatalogue } from '../../example-app/control-room/calls/catalogue.js'
import { createEventLog } from '../../example-app/control-room/metrics/event-log.js'
import type { Receivers } from '../../example-app/control-room/ports.js'
import { openReceivers } from '../../example-app/control-room/receivers/open-receivers.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { compile } from '../support/compile.js'
import { createTestIssuer } from '../support/test-issuer.js'
import { until } from '../support/until.js'
import { API_KEY, READ, WRITE } from './calls-kit.js'

const PROGRAMS = '../../example-app/control-room/receivers/'

let core: IdentityCore
let catalogue: Catalogue
let receivers: Receivers
let callers: Callers
const log = createEventLog()

beforeAll(async () => {
  const programOf = (file: string) => compile(new URL(PROGRAMS + file, import.meta.url))
  core = await startIdentityCore({ apiKey: API_KEY })
  catalogue = await openCatalogue({ core, openIssuer: createTestIssuer })
  receivers = await openReceivers({
    coreUrl: core.url,
    apiKey: API_KEY,
    programs: {
      receiver: await programOf('child/main.ts'),
      answer: await programOf('answer/main.ts'),
    },
    onChange: () => undefined,
    onTold(told) {
      callers?.hear(log.add(told.events), told.requests)
    },
  })
  callers = openCallers({ mint: { url: core.url, apiKey: API_KEY }, receivers, catalogue })
})
afterAll(async () => {
  await receivers.close()
  await catalogue.close()
  await core.close()
})

const AT_ONCE = 20

it('get from a receiver of the room what the catalogue says', async () => {
  const faults: string[] = []
  for (let at = 0; at < catalogue.cases.length; at += AT_ONCE) {
    const some = catalogue.cases.slice(at, at + AT_ONCE)
    await Promise.all(
      some.map(async ({ name }) => {
        const expected = catalogue.find(name)?.expect
        const { answer, operator } = await callers.call({ ...READ, hostileToken: name })
        const status = 'status' in answer ? answer.status : answer.failure
        const failed = operator.steps.filter(({ state }) => state === 'failed')
        if (status !== expected) faults.push(`${name}: ${status}, not ${expected}`)
        if (operator.outcome !== 'refused') faults.push(`${name}: ${operator.outcome}`)
        if (failed.length !== 1) faults.push(`${name}: ${failed.length} steps have failed`)
      }),
    )
  }
  expect(faults).toEqual([])
})

it('run once on both receivers, with one store', async () => {
  const { answers, newOrders } = await callers.manyCalls({ order: WRITE, how: 'twenty-at-once' })
  expect(newOrders).toBe(1)
  const runs = answers.filter(({ status, isReplay }) => status === 201 && !isReplay)
  expect(runs).toMatchObject([{ calls: 1 }])
})

it('show a write whose receiver is killed in the middle, and its retry', async () => {
  await receivers.holdNextWrite('orders-1', true)
  const cut = callers.call(WRITE)
  await until('a held write', async () => receivers.states()[0]?.heldWrites === 1)
  await receivers.kill('orders-1')
  const { answer, operator } = await cut
  expect(answer).toMatchObject({ failure: expect.stringContaining('cut') })
  expect(operator.outcome).toBe('failed')
  expect(operator.steps.find(({ state }) => state === 'failed')?.name).toBe('Handler')
  const retry = await callers.call({ ...WRITE, receiver: 'orders-2', idempotencyKey: 'same' })
  expect(retry.operator).toMatchObject({ reason: 'request_in_progress' })
})
