import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type Callers, openCallers } from '../../example-app/control-room/calls/callers.js'
import { type Catalogue, openCatalogue } from '../../example-app/control-room/calls/catalogue.js'
import { compose, curlCommand } from '../../example-app/control-room/calls/compose.js'
import { exchange } from '../../example-app/control-room/calls/raw-exchange.js'
import { createEventLog } from '../../example-app/control-room/metrics/event-log.js'
import {
  CERTIFICATE_READ,
  GOOD_READ,
  GOOD_WRITE,
  KEY_READ,
} from '../../example-app/control-room/page/compose/good-calls.js'
import type { Receivers } from '../../example-app/control-room/ports.js'
import { openReceivers } from '../../example-app/control-room/receivers/open-receivers.js'
import { selfSigned } from '../../example-app/control-room/receivers/self-signed.js'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../example-app/identity-core/identity-core.js'
import { listen } from '../../example-app/listen.js'
import { POLICY } from '../../example-app/orders/policy.js'
import { removeTemporaryFolder, temporaryFolder } from '../../example-app/temporary-folder.js'
import { runHere, temporaryFile } from '../cli/kit.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { compile } from '../support/process/compile.js'
import { until } from '../support/until.js'

const API_KEY = 'the-key-of-the-control-room'
const PROGRAMS = '../../example-app/control-room/receivers/'

let core: IdentityCore
let catalogue: Catalogue
let receivers: Receivers
let callers: Callers
let folder: string
let judged = 0
const log = createEventLog()

beforeAll(async () => {
  const programOf = (file: string) => compile(new URL(PROGRAMS + file, import.meta.url))
  core = await startIdentityCore({ apiKey: API_KEY })
  catalogue = await openCatalogue({ core, openIssuer: createTestIssuer })
  receivers = await openReceivers({
    coreUrl: core.url,
    issuer: core.issuer,
    apiKey: API_KEY,
    programs: {
      receiver: await programOf('child/main.ts'),
      answer: await programOf('answer/main.ts'),
    },
    onChange: () => undefined,
    onReport(report) {
      callers?.receive(log.add(report.events), report.requests)
    },
  })
  const pair = selfSigned('billing')
  folder = await temporaryFolder('express-service-auth-test-')
  const certificate = { ...pair, path: join(folder, 'billing.pem') }
  await writeFile(certificate.path, pair.cert + pair.key)
  const mint = { coreUrl: core.url, issuer: core.issuer, apiKey: API_KEY, certificate }
  callers = openCallers({ mint, receivers, catalogue })
})
afterAll(async () => {
  await receivers.close()
  await catalogue.close()
  await core.close()
  await removeTemporaryFolder(folder)
})

/** The steps of `service-auth doctor`, and those of the room that ask the same. */
const ROOM_STEPS: Readonly<Record<string, readonly string[]>> = {
  bearer: ['Authorization header'],
  header: ['Form of the token', 'Header and algorithm', 'Key id'],
  key: ['Key is known'],
  signature: ['Signature'],
  times: ['Life time'],
  denylist: ['Denylist'],
  caller: ['Caller approved'],
  required_permissions: ['Permissions'],
}

/** Cases that are sent side by side. */
const AT_ONCE = 20

it('get what the catalogue of hostile tokens says, at the step that doctor names', async () => {
  const policy = await temporaryFile(JSON.stringify({ ...POLICY, issuer: core.issuer }))
  const { cases } = catalogue
  const faults: string[] = []
  for (let at = 0; at < cases.length; at += AT_ONCE) {
    const some = cases.slice(at, at + AT_ONCE)
    const found = await Promise.all(some.map(({ name }) => faultsOf(name, policy)))
    faults.push(...found.flat())
  }
  expect(faults).toEqual([])
  expect(cases.length).toBeGreaterThan(200)
  expect(judged).toBeGreaterThan(200)
})

it('show a write whose receiver is killed in the middle, and its retries', async () => {
  const orders = receivers.orders()
  await receivers.holdNextWrite('orders-1', true)
  const cut = callers.call(GOOD_WRITE)
  await until('a held write', async () => receivers.states()[0]?.heldWrites === 1)
  await receivers.kill('orders-1')
  const { answer, operator } = await cut
  expect(answer).toMatchObject({ failure: expect.stringContaining('cut') })
  expect(operator.outcome).toBe('failed')
  expect(operator.steps.find(({ state }) => state === 'failed')?.name).toBe('Handler')
  const retry = () => callers.call({ ...GOOD_WRITE, receiver: 'orders-2', idempotencyKey: 'same' })
  expect((await retry()).operator).toMatchObject({ reason: 'request_in_progress' })
  const abandoned = () => receivers.writes().find(({ view }) => view?.state === 'abandoned')
  await until('its lease has run out', async () => abandoned() !== undefined)
  expect((await retry()).operator).toMatchObject({ reason: 'outcome_unknown' })
  // The store of the room, not Redis as in the tests of the page.
  const { record = '', view } = abandoned() ?? {}
  const done = { as: 'done', status: 201, body: '{"by":"hand"}' } as const
  const settled = await receivers.settle({ record, fence: view?.fence ?? 0, ...done })
  expect(settled).toEqual({ isSettled: true })
  expect(await retry()).toMatchObject({
    answer: { text: expect.stringContaining(done.body) },
    operator: { outcome: 'replayed' },
  })
  expect(receivers.orders()).toBe(orders + 1)
  await receivers.start('orders-1')
})

async function faultsOf(name: string, policy: string): Promise<string[]> {
  const hostile = catalogue.find(name)
  const { answer, operator, request } = await callers.call({ ...GOOD_READ, hostileToken: name })
  const status = 'status' in answer ? answer.status : answer.failure
  const { steps, reason } = operator
  const failed = steps.findIndex(({ state }) => state === 'failed')
  const step = steps[failed]
  const states = steps.map(({ state }) => state)
  const expected = steps.map((_, index) => stateAt(index, failed))
  // This policy of doctor's accepts no bound tokens, and the room's does.
  const isBound = name.startsWith('cnf ')
  const doctor = isBound ? undefined : await doctorOn(hostile?.authorization ?? '', policy)
  return [
    ...(status === hostile?.expect || status === hostile?.orElse
      ? []
      : [`${name}: ${status}, not ${hostile?.expect}`]),
    ...(request.token.hostility === hostile?.why ? [] : [`${name}: its why is another`]),
    ...(/^[A-Z].*\.$/.test(step?.detail ?? '') ? [] : [`${name}: no sentence for ${reason}`]),
    ...(states.join() === expected.join() ? [] : [`${name}: ${states}`]),
    ...(doctor ? disagreements(name, { doctor, reason, step: step?.name ?? 'none' }) : []),
  ]
}

function disagreements(
  name: string,
  { doctor, reason, step }: { doctor: DoctorVerdict; reason: string | undefined; step: string },
): string[] {
  // Doctor looks up every key.
  const looked = reason === 'key_not_looked_up' ? 'key_unknown' : reason
  const doctors = doctor.steps.find(({ result }) => result === 'failed')?.step ?? 'none'
  return [
    ...(doctor.reason === looked ? [] : [`${name}: ${reason}, and doctor says ${doctor.reason}`]),
    ...((ROOM_STEPS[doctors] ?? ['Claims']).includes(step)
      ? []
      : [`${name}: ${step}, and doctor says ${doctors}`]),
  ]
}

/** `undefined` of what doctor cannot judge: it is given tokens, not headers. */
async function doctorOn(authorization: string, policy: string): Promise<DoctorVerdict | undefined> {
  if (!/^bearer \S+$/i.test(authorization)) return undefined
  const argv = ['doctor', '--policy', policy, '--token-stdin', '--json']
  const { json } = await runHere(argv, { stdin: authorization })
  const { verdict } = json() as { verdict?: DoctorVerdict }
  judged += verdict === undefined ? 0 : 1
  return verdict
}

interface DoctorVerdict {
  readonly reason: string
  readonly steps: readonly { readonly step: string; readonly result: string }[]
}

function stateAt(index: number, failed: number): string {
  if (index === failed) return 'failed'
  return index < failed ? 'passed' : 'not-reached'
}

const seen = async (order: Parameters<Callers['call']>[0]) => {
  const { answer, operator } = await callers.call(order)
  const { reason, steps } = operator
  const failed = steps.find(({ state }) => state === 'failed')?.name
  return { status: 'status' in answer ? answer.status : answer.failure, reason, failed }
}

it.each([
  ['a key', KEY_READ, 'proof_missing'],
  ['a certificate', CERTIFICATE_READ, 'certificate_missing'],
] as const)('a token that is bound to %s is of no use to a thief', async (_, read, reason) => {
  const accepted = { status: 200, reason: undefined, failed: undefined }
  for (const receiver of ['orders-1', 'orders-2'] as const) {
    expect(await seen({ ...read, receiver })).toEqual(accepted)
    expect(await seen({ ...read, receiver, isTokenReused: true })).toEqual(accepted)
    const stolen = { ...read, receiver, isTokenReused: true, binding: 'none' } as const
    expect(await seen(stolen)).toEqual({ status: 401, reason, failed: 'Binding' })
  }
})

it('one token that is bound to a key serves many writes', async () => {
  const write = { ...GOOD_WRITE, binding: 'key' } as const
  expect(await seen(write)).toMatchObject({ status: 201 })
  expect(await seen({ ...write, isTokenReused: true })).toMatchObject({ status: 201 })
})

it.each([
  ['a key', KEY_READ],
  ['a certificate', CERTIFICATE_READ],
])('the curl command of a call with %s does the same', async (_, read) => {
  const { request } = await callers.call(read)
  const { stdout } = await promisify(execFile)('sh', ['-c', request.curl])
  expect(stdout).toMatch(/^HTTP\/1.1 200 /)
})

it('the curl command of a write has its token, key and body, whatever is in them', async () => {
  const got: unknown[] = []
  const server = await listen(async (incoming, response) => {
    const { authorization, 'idempotency-key': key } = incoming.headers
    got.push([incoming.method, incoming.url, authorization, key, await text(incoming)])
    response.end()
  }, 0)
  onTestFinished(server.close)
  const composed = { ...compose(GOOD_WRITE, 'k-1'), body: `{"it's":"$HOME \\ \`date\` 100%"}` }
  const tokens = catalogue.cases.map(({ name }) => catalogue.find(name)?.authorization)
  const odd = tokens.filter((token) => token !== undefined && !/^[\w .-]+$/.test(token))
  expect(odd.length).toBeGreaterThan(20)
  for (const authorization of [...odd, `it's "$(date)" %s \\n \`date\` \u00e9`]) {
    const call = { url: server.url, authorization: String(authorization), call: '' }
    await promisify(execFile)('sh', ['-c', curlCommand(composed, call)])
    expect(got.pop()).toEqual(['POST', '/orders', authorization, '"k-1"', composed.body])
  }
})

it('a receiver that is silent is waited for no longer than the limit', async () => {
  const { url, close } = await listen(() => {}, 0)
  onTestFinished(close)
  const request = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  const { answer } = await exchange({ url, request, limitMs: 60 })
  expect(answer).toMatchObject({ failure: 'nobody answered within 0.06 s', text: '' })
  expect(answer.milliseconds).toBeLessThan(2000)
})
