import type { Ending, Store } from 'express-service-auth'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GOOD_READ, GOOD_WRITE } from '../../example-app/control-room/page/compose/good-calls.js'
import type { CallOrder, CallResult } from '../../example-app/control-room/protocol.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { openRoomHere, type RoomHere } from './calls-kit.js'

/** What befalls the store of the receivers. */
const fate = {
  isDown: false,
  endsAs: undefined as Ending | undefined,
  /** Waited for before a run ends. */
  beforeEnd: async () => {},
}
const denylist = new ManualDenylist()
let room: RoomHere

function fateful(store: Store): Store {
  const orFail = () => {
    if (fate.isDown) throw new Error('the store is down')
  }
  return {
    ...store,
    async consume(id, ttlMs) {
      orFail()
      return store.consume(id, ttlMs)
    },
    async reserve(request) {
      orFail()
      return store.reserve(request)
    },
    async settle(run, ending) {
      await fate.beforeEnd()
      return store.settle(run, fate.endsAs ?? ending)
    },
  }
}

beforeAll(async () => {
  room = await openRoomHere({ denylist, wrapStore: fateful })
})
afterAll(() => room.close())

const call = (order: Partial<CallOrder> = {}) => room.callers.call({ ...GOOD_WRITE, ...order })

function shown({ answer, operator }: CallResult) {
  const failed = operator.steps.find(({ state }) => state === 'failed')
  const { outcome, reason } = operator
  const status = 'status' in answer ? answer.status : answer.failure
  return { status, outcome, reason, step: failed?.name, detail: failed?.detail }
}

it('finds a missing permission', async () => {
  const result = await call({ permissions: ['orders:read'] })
  expect(shown(result)).toMatchObject({
    status: 403,
    outcome: 'refused',
    reason: 'permission_missing',
    step: 'Permissions',
    detail: expect.stringContaining('orders:write is not granted to "billing"'),
  })
  expect(result.operator.permission).toBe('orders:write')
})

it('finds a caller that is not approved, a foreign audience and a denied caller', async () => {
  const unapproved = await call({ caller: 'shipping\n' })
  expect(shown(unapproved)).toMatchObject({
    status: 403,
    reason: 'caller_not_approved',
    step: 'Caller approved',
    detail: expect.stringContaining('"shipping\\n"'),
  })
  const foreign = await call({ audience: 'invoices' })
  expect(shown(foreign)).toMatchObject({ reason: 'claim_invalid', step: 'Claims' })
  expect(foreign.operator).toMatchObject({ claim: 'aud', keyId: expect.stringMatching(/^d-/) })
  denylist.deny('callers', 'reporting')
  const denied = await room.callers.call({ ...GOOD_READ, caller: 'reporting' })
  denylist.allow('callers', 'reporting')
  expect(shown(denied)).toMatchObject({
    status: 403,
    reason: 'caller_denied',
    step: 'Denylist',
    detail: 'The denylist shuts out "reporting".',
  })
})

it('finds a denied key, a denied token and a denylist that is unreachable', async () => {
  const first = await room.callers.call(GOOD_READ)
  const { kid } = first.request.token.header as { kid: string }
  const { jti } = first.request.token.payload as { jti: string }
  denylist.deny('keys', kid)
  const byKey = await room.callers.call(GOOD_READ)
  denylist.allow('keys', kid)
  expect(shown(byKey)).toMatchObject({ status: 401, reason: 'key_denied', step: 'Denylist' })
  expect(byKey.operator.keyId).toBe(kid)
  denylist.deny('tokenIds', jti)
  denylist.isKnown = false
  const unknown = await room.callers.call(GOOD_READ)
  denylist.isKnown = true
  expect(shown(unknown)).toMatchObject({
    status: 503,
    outcome: 'undecided',
    reason: 'denylist_unavailable',
    step: 'Denylist',
  })
})

it('finds a token that was used, and a store that cannot tell', async () => {
  await call()
  const replayed = await call({ isTokenReused: true })
  expect(shown(replayed)).toMatchObject({
    status: 401,
    reason: 'token_replayed',
    step: 'Token used once',
  })
  fate.isDown = true
  const result = await call()
  fate.isDown = false
  expect(shown(result)).toMatchObject({
    status: 503,
    outcome: 'undecided',
    reason: 'store_unavailable',
    step: 'Token used once',
  })
})

it('finds what an idempotency key came to', async () => {
  const missing = await call({ idempotencyKey: 'none' })
  expect(shown(missing)).toMatchObject({ reason: 'key_missing', step: 'Idempotency-Key' })
  await call()
  const reused = await call({ idempotencyKey: 'same', body: 'another' })
  expect(shown(reused)).toMatchObject({ status: 422, reason: 'key_reused' })

  let letGo = () => {}
  const reached = new Promise<void>((reach) => {
    fate.beforeEnd = () => {
      reach()
      return new Promise((resolve) => {
        letGo = resolve
      })
    }
  })
  const running = call()
  await reached
  const meanwhile = await call({ idempotencyKey: 'same' })
  fate.beforeEnd = async () => {}
  letGo()
  expect(shown(meanwhile)).toMatchObject({ status: 409, reason: 'request_in_progress' })
  expect(shown(await running)).toMatchObject({ status: 201, step: undefined })

  fate.endsAs = { type: 'abandoned' }
  await call()
  fate.endsAs = undefined
  const unknown = await call({ idempotencyKey: 'same' })
  expect(shown(unknown)).toMatchObject({
    status: 409,
    outcome: 'refused',
    reason: 'outcome_unknown',
    step: 'Idempotency-Key',
    detail: expect.stringContaining('nobody knows'),
  })
  expect(unknown.operator.steps.at(-1)).toEqual({ name: 'Handler', state: 'not-reached' })
})

it('finds a key set that is unreachable', async () => {
  room.core.setDown(true)
  await room.core.rotate()
  const result = await room.callers.call(GOOD_READ)
  room.core.setDown(false)
  expect(shown(result)).toMatchObject({
    status: 503,
    outcome: 'undecided',
    reason: 'key_set_unavailable',
    step: 'Key is known',
  })
})
