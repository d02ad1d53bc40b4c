import { memoryStore } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { watchedStore } from '../../support/stores/watched-store.js'
import { until } from '../../support/until.js'
import { bodyAbout, legacyUser, newId, openEndpoint, PASSWORD_LOGIN } from './kit.js'
import { openSmallCore } from './small-core.js'

/** For what comes before the part that hangs, also on a busy machine. */
const LONG_ENOUGH_MS = 3000

const core = await openSmallCore()
afterAll(() => core.close())

describe.concurrent('when the time is over', () => {
  it('an import that has begun goes on, and the retry finds it', async () => {
    const slow = await openSmallCore()
    const store = watchedStore(memoryStore())
    const endpoint = await openEndpoint(slow, { options: { store, timeoutMs: LONG_ENOUGH_MS } })
    let letGo = (): void => {}
    const held = new Promise<undefined>((resolve) => (letGo = () => resolve(undefined)))
    slow.beforeImport = () => held
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(503)
    expect(store.endings).toEqual([])
    expect((await endpoint.post(bodyAbout(id))).status).toBe(409)
    letGo()
    await until('the import is settled', async () => store.endings.length === 1)
    expect(store.endings).toEqual([{ type: 'finished', answer: true }])
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(slow.imports).toHaveLength(1)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual([
      'outcome_unknown',
      'in_progress',
      'existing',
    ])
    await endpoint.close()
    await slow.close()
  })

  it('nothing is begun: a reservation that comes too late is given back', async () => {
    const store = watchedStore(memoryStore())
    const small = await openSmallCore()
    const endpoint = await openEndpoint(small, { options: { store, timeoutMs: 1000 } })
    const letGo = store.hold('reserve')
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(503)
    letGo()
    await until('it is given back', async () => store.endings.length === 1)
    expect(store.endings).toEqual([{ type: 'released', answer: true }])
    expect(small.imports).toEqual([])
    const patient = await openEndpoint(small, { options: { store } })
    expect((await patient.post(bodyAbout(id))).status).toBe(200)
    await Promise.all([patient.close(), endpoint.close(), small.close()])
  })

  it('an answer that is known is given, however long the store takes to keep it', async () => {
    const store = watchedStore(memoryStore())
    const endpoint = await openEndpoint(core, { options: { store, timeoutMs: LONG_ENOUGH_MS } })
    const letGo = store.hold('settle')
    expect((await endpoint.post(bodyAbout(newId()))).status).toBe(200)
    letGo()
    store.fail('settle')
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual(['created', 'created'])
    await endpoint.close()
  })
})

describe.concurrent('the key', () => {
  it('is freed by a refusal and by an outage, and kept by an account', async () => {
    const store = watchedStore(memoryStore())
    const small = await openSmallCore()
    const endpoint = await openEndpoint(small, { options: { store } })
    const id = newId()
    small.beforeImport = async () => 'E003: A user with email x already exists in emailpassword.'
    expect((await endpoint.post(bodyAbout(id))).status).toBe(403)
    small.beforeImport = async () => 'org.postgresql.util.PSQLException: connection lost'
    expect([403, 503]).toContain((await endpoint.post(bodyAbout(id))).status)
    small.beforeImport = async () => undefined
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(store.endings.map(({ type }) => type)).toEqual(['released', 'released', 'finished'])
    await endpoint.close()
    await small.close()
  })

  it('of a run that has ended without a result is taken over', async () => {
    const kept = memoryStore()
    const store = watchedStore({
      ...kept,
      // The instance that had the key is gone.
      settle: (run) => kept.settle(run, { type: 'abandoned' }),
    })
    const endpoint = await openEndpoint(core, { options: { store } })
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    expect(endpoint.decisions.map(({ reason }) => reason)).toEqual(['created', 'existing'])
    expect(store.fences).toHaveLength(2)
    await endpoint.close()
  })

  it('has a lease that is renewed while an import takes long', async () => {
    const small = await openSmallCore()
    const store = watchedStore(memoryStore())
    const endpoint = await openEndpoint(small, { options: { store, leaseSeconds: 1 } })
    let letGo = (): void => {}
    const held = new Promise<undefined>((resolve) => (letGo = () => resolve(undefined)))
    small.beforeImport = () => held
    const id = newId()
    const first = endpoint.post(bodyAbout(id))
    // Three in each lease.
    await until('the first lease is over', async () => store.renewals() > 3)
    expect((await endpoint.post(bodyAbout(id))).status).toBe(409)
    letGo()
    expect((await first).status).toBe(200)
    expect(small.imports).toHaveLength(1)
    await endpoint.close()
    await small.close()
  })

  it('is another one at another issuer, and does not hold identities', async () => {
    const endpoint = await openEndpoint(core, {
      options: {
        loadUser: ({ externalUserId }) => ({
          identities: [
            ...legacyUser(externalUserId).identities.map((login) => ({
              ...login,
              isPrimary: true,
            })),
            {
              ...PASSWORD_LOGIN,
              userId: 'later',
              email: `later-${externalUserId}@example.com`,
              plainTextPassword: 'a password of nobody',
            },
          ],
        }),
      },
    })
    const id = newId()
    expect((await endpoint.post(bodyAbout(id))).status).toBe(200)
    const more = { identities: [{ ...PASSWORD_LOGIN, userId: 'later' }] }
    expect((await endpoint.post(bodyAbout(id, more))).status).toBe(200)
    await endpoint.close()
  })
})
