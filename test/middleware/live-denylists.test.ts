import { type LiveDenylist, ServiceAuthError, serviceAuth } from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { expectOwnError } from '../support/receiver/own-error.js'
import { authFor } from '../support/receiver/receiver.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'
import { throwing } from '../support/throwing.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const reject = (thrown: unknown) => () => Promise.reject(thrown)

describe('a serviceAuth with live denylists', () => {
  it('asks each of them once when it is made, and no other thing of them', () => {
    const lists = [new ManualDenylist(), new ManualDenylist()]
    for (const list of lists) list.readiness = reject(new Error('not asked'))
    authFor(issuer.policy({ denylist: lists }))
    for (const list of lists) expect(list.asked).toEqual([issuer.url])
  })

  it('is made whatever they answer then', async () => {
    const broken = [
      throwing(new Error('not yet')),
      () => Promise.reject(new Error('not yet')),
      () => null,
      () => undefined,
    ]
    for (const lists of broken) {
      const denylist = Object.assign(new ManualDenylist(), { lists }) as unknown as LiveDenylist
      expect(() => authFor(issuer.policy({ denylist }))).not.toThrow()
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  })

  it('is ready when the key set and all of them are', async () => {
    const lists = [new ManualDenylist(), new ManualDenylist()]
    const opened: (() => void)[] = []
    for (const list of lists) list.readiness = () => new Promise((resolve) => opened.push(resolve))
    const auth = authFor(issuer.policy({ denylist: [lists[0] ?? {}, {}, lists[1] ?? {}] }))
    let isReady = false
    const ready = auth.ready().then(() => {
      isReady = true
    })
    for (const open of opened) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(isReady).toBe(false)
      open()
    }
    await ready
    expect(opened).toHaveLength(2)
  })

  it('is not ready when one of them is not, or the key set, and tries again', async () => {
    const own = await createTestIssuer()
    onTestFinished(() => own.close())
    const lists = [new ManualDenylist(), new ManualDenylist()]
    const auth = authFor(own.policy({ denylist: lists }))
    own.down()
    for (const list of lists) list.readiness = reject(new Error('down'))
    await expect(auth.ready()).rejects.toMatchObject({ code: 'unavailable' })
    await expect(auth.ready()).rejects.toMatchObject({ code: 'unavailable' })
    for (const list of lists) list.readiness = async () => {}
    own.up()
    await auth.ready()
  })

  it('rejects as unavailable or unfit, whatever a denylist rejects with or throws', async () => {
    const list = new ManualDenylist()
    const auth = authFor(issuer.policy({ denylist: list }))
    const odd = Object.assign(new Error('odd'), { status: 401, headers: {} })
    const causes = [odd, undefined, 'text', new ServiceAuthError('internal', 'x')]
    const throwing = (thrown: unknown) => () => {
      throw thrown
    }
    for (const cause of causes) {
      for (const fail of [reject(cause), throwing(cause)]) {
        list.readiness = fail
        const error: unknown = await auth.ready().catch((thrown: unknown) => thrown)
        expectOwnError(error, { code: 'unavailable', cause })
      }
    }
    const own = [
      new ServiceAuthError('unavailable', 'the denylist is unreachable'),
      new ServiceAuthError('unfit', 'the denylist lacks a right'),
    ]
    for (const error of own) {
      list.readiness = reject(error)
      await expect(auth.ready()).rejects.toBe(error)
    }
  })

  it('closes none of them', () => {
    const list = new ManualDenylist()
    const auth = serviceAuth(issuer.policy({ denylist: [list] }))
    auth.close()
    auth.close()
    expect(list.closed).toBe(0)
  })
})

describe('health()', () => {
  const healthOf = (policy: object) => authFor(issuer.policy(policy)).health()

  it('holds the live denylists in their order, and none where there is none', () => {
    const [one, other] = [new ManualDenylist(), new ManualDenylist()]
    one.deny('keys', 'x')
    other.isKnown = false
    expect(healthOf({ denylist: [one, { keys: ['y'] }, other] }).denylists).toEqual([
      { state: 'fresh', entries: 1, version: 1 },
      { state: 'cold', entries: 0, version: 1 },
    ])
    for (const denylist of [undefined, {}, [{}]]) {
      expect(healthOf({ denylist })).not.toHaveProperty('denylists')
    }
  })

  it('holds no token cache where there is none', () => {
    expect(healthOf({ tokenCache: false })).not.toHaveProperty('tokenCache')
    expect(healthOf({ tokenCache: { max: 7 } }).tokenCache).toEqual({
      entries: 0,
      max: 7,
      hits: 0,
      misses: 0,
    })
  })
})
