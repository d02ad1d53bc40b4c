import { afterAll, beforeAll, expect, it } from 'vitest'
import { POLICY } from '../../example-app/orders/policy.js'
import { runHere, temporaryFile } from '../cli/kit.js'
import { openRoomHere, READ, type RoomHere } from './calls-kit.js'

let room: RoomHere
let judged = 0

beforeAll(async () => {
  room = await openRoomHere()
})
afterAll(() => room.close())

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

it('answers every hostile token as the catalogue says, at the step that doctor names', async () => {
  const policy = await temporaryFile(JSON.stringify({ ...POLICY, issuer: room.core.url }))
  const { cases } = room.catalogue
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

async function faultsOf(name: string, policy: string): Promise<string[]> {
  const hostile = room.catalogue.find(name)
  const { answer, operator, request } = await room.callers.call({ ...READ, hostileToken: name })
  const status = 'status' in answer ? answer.status : answer.failure
  const { steps, reason } = operator
  const failed = steps.findIndex(({ state }) => state === 'failed')
  const step = steps[failed]
  const states = steps.map(({ state }) => state)
  const expected = steps.map((_, index) => stateAt(index, failed))
  const doctor = await doctorOn(hostile?.authorization ?? '', policy)
  return [
    ...(status === hostile?.expect ? [] : [`${name}: ${status}, not ${hostile?.expect}`]),
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
  const doctors = doctor.steps.find(({ result }) => result === 'failed')?.step ?? 'none'
  return [
    ...(doctor.reason === reason ? [] : [`${name}: ${reason}, and doctor says ${doctor.reason}`]),
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
