import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { ServiceAuthError } from 'express-service-auth'
import {
  idempotencyStoreCases,
  liveDenylistCases,
  recordKeeperCases,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Calls, createCalls } from '../../example-app/control-room/receivers/ipc/calls.js'
import {
  type ParentDenylist,
  parentDenylist,
} from '../../example-app/control-room/receivers/ipc/parent-denylist.js'
import {
  createLent,
  parentStore,
} from '../../example-app/control-room/receivers/ipc/parent-store.js'
import { startProgram } from '../../example-app/control-room/receivers/start-program.js'
import { compile } from '../support/process/compile.js'
import { testCases } from '../support/stores/store-cases.js'
import { until } from '../support/until.js'

/** What a receiver holds of the process that keeps the records. */
async function openKeeper() {
  const program = await compile(new URL('receivers-keeper.ts', import.meta.url))
  const child = startProgram(program)
  const denylists = new Set<ParentDenylist>()
  const lent = createLent()
  const calls: Calls = createCalls((message) => void child.send(message), lent.handlers)
  child.on('message', (message: { type: string } & Record<string, never>) => {
    if (message.type !== 'denied') return calls.receive(message as never)
    for (const denylist of denylists) denylist.receive(message['denied'] as never)
  })
  child.on('close', () => calls.end())
  await once(child, 'message')
  return {
    child,
    calls,
    store: parentStore(calls, lent),
    denylist() {
      const denylist = parentDenylist()
      denylists.add(denylist)
      return denylist
    },
    async end() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}

type Keeper = Awaited<ReturnType<typeof openKeeper>>

let shared: Keeper
const others: Keeper[] = []
beforeAll(async () => {
  shared = await openKeeper()
})
afterAll(() => Promise.all([shared, ...others].map((keeper) => keeper.end())))

describe('the store of another process, as a store of used tokens', () => {
  testCases(singleUseStoreCases(() => shared.store))
})

describe('the store of another process, as a store of idempotency keys', () => {
  testCases(idempotencyStoreCases(() => shared.store))
})

describe('the store of another process, as a keeper of records', () => {
  testCases(recordKeeperCases(() => shared.store))
})

describe('the denylist of another process', () => {
  testCases(
    liveDenylistCases(() => ({
      denylist: shared.denylist(),
      deny: (entry) => shared.calls.ask('deny', [entry]),
      allow: (target) => shared.calls.ask('allow', [target]),
    })),
  )
})

const request = () => ({
  key: randomUUID(),
  owner: randomUUID(),
  fingerprint: 'f',
  leaseMs: 60_000,
  retentionMs: 60_000,
  rerunAbandoned: false,
})

async function keeperOfItsOwn(): Promise<Keeper> {
  const keeper = await openKeeper()
  others.push(keeper)
  return keeper
}

const rejectionOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error) => error,
  )

describe.concurrent('a call of another process', () => {
  it('keeps the kind of a rejection, and its words', async () => {
    const { store, calls } = shared
    expect(await rejectionOf(store.resolve('r', -1, { type: 'freed' }))).toBeInstanceOf(TypeError)
    const stumbled = await rejectionOf(calls.ask('stumble', []))
    expect(stumbled).toEqual(new Error('stumbled'))
    expect(await rejectionOf(calls.ask('toString', []))).toEqual(
      new TypeError('there is no toString'),
    )
  })

  it('is over in time when the other process hangs, and what comes late is given back', async () => {
    const { child, store } = await keeperOfItsOwn()
    const late = request()
    child.kill('SIGSTOP')
    const fault = await rejectionOf(store.reserve(late))
    expect(fault).toBeInstanceOf(ServiceAuthError)
    expect(fault).toMatchObject({ code: 'unavailable' })
    expect(store.health()).toMatchObject({ state: 'down', lastError: 'timeout' })

    child.kill('SIGCONT')
    await until('the key is free again', async () => {
      const other = { ...late, owner: randomUUID() }
      return (await store.reserve(other)).outcome === 'reserved'
    })
    expect(store.health()).toMatchObject({ state: 'up' })
  })

  it('is over at once when the other process is gone', async () => {
    const { child, store } = await keeperOfItsOwn()
    child.kill('SIGSTOP')
    const waiting = rejectionOf(store.consume('id', 1000))
    child.kill('SIGKILL')
    expect(await waiting).toMatchObject({ code: 'unavailable' })
    expect(await rejectionOf(store.check())).toMatchObject({ code: 'unavailable' })
    expect(store.health()).toMatchObject({ state: 'down', lastError: 'closed' })
  })

  it('is none of a store that is closed', async () => {
    const { store } = await keeperOfItsOwn()
    store.close()
    expect(await rejectionOf(store.consume('id', 1000))).toMatchObject({ code: 'unavailable' })
    expect(store.health()).toMatchObject({ state: 'down', lastError: 'closed' })
  })

  it('leaves a denylist stale while the other process hangs', async () => {
    const keeper = await keeperOfItsOwn()
    const denylist = keeper.denylist()
    await denylist.ready()
    keeper.child.kill('SIGSTOP')
    await until('it is stale', async () => denylist.health().state === 'stale')
    expect(denylist.lists('https://issuer.example')).toBeDefined()
    keeper.child.kill('SIGCONT')
    await until('it is fresh', async () => denylist.health().state === 'fresh')
  })

  it('ends what was denied for a while', async () => {
    const denylist = shared.denylist()
    await denylist.ready()
    const at = Date.now() / 1000
    const issuer = 'https://issuer.example'
    const entry = { issuer, kind: 'caller', value: 'x', reason: 'r', by: 'b', at, until: at + 2 }
    await shared.calls.ask('deny', [entry])
    await until('it is denied', async () => denylist.lists(issuer)?.callers.has('x') === true)
    await until('it is over', async () => denylist.lists(issuer)?.callers.has('x') === false)
    denylist.close()
  })
})
