import express from 'express'
import {
  acceptOneOf,
  type LiveDenylist,
  serviceAuth,
  sessionCredential,
} from 'express-service-auth'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { expectOwnError } from '../support/receiver/own-error.js'
import { authFor, startBehind } from '../support/receiver/receiver.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'

const issuer = await createTestIssuer()
const other = await createTestIssuer()
afterAll(() => Promise.all([issuer.close(), other.close()]))

/** A denylist whose `catchUp` a test replaces. */
class LateDenylist extends ManualDenylist {
  behind: () => unknown = () => undefined
  catchUp(): ReturnType<NonNullable<LiveDenylist['catchUp']>> {
    return this.behind() as Promise<void> | undefined
  }

  /** It learns of a denial while a decision waits for it. */
  deniesMeanwhile(end: () => void = () => {}): void {
    this.behind = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      this.deny('keys', issuer.kid)
      end()
    }
  }
}

const fail = (): never => {
  throw new Error('could not catch up')
}

const authsFor = (denylist: LiveDenylist) => {
  const several = serviceAuth([issuer.policy({ denylist }), other.policy()])
  onTestFinished(() => several.close())
  return { 'one policy': authFor(issuer.policy({ denylist })), 'several policies': several }
}
const KINDS = ['one policy', 'several policies'] as const

describe.each(KINDS)('a decision by %s', (kind) => {
  describe.each([
    ['resolves', () => {}],
    ['rejects', fail],
  ])('waits for a denylist whose promise %s', (_, end) => {
    it.each(EXPRESS_MAJORS)(
      'of a new token and a remembered one, on $major',
      async ({ express }) => {
        const list = new LateDenylist()
        const auth = authsFor(list)[kind]
        const receiver = await startBehind(express, auth)
        const remembered = issuer.token()
        expect((await receiver.call(remembered)).status).toBe(200)
        for (const token of [remembered, issuer.token()]) {
          list.deniesMeanwhile(end)
          expect((await receiver.call(token)).status).toBe(401)
          list.allow('keys', issuer.kid)
          list.behind = async () => end()
          expect((await receiver.call(token)).status).toBe(200)
        }
        expect(receiver.errors).toEqual([])
      },
    )

    it('by authenticate()', async () => {
      const list = new LateDenylist()
      const auth = authsFor(list)[kind]
      const headers = { authorization: `Bearer ${issuer.token()}` }
      expect((await auth.authenticate(headers)).outcome).toBe('accepted')
      list.deniesMeanwhile(end)
      expect((await auth.authenticate(headers)).outcome).toBe('refused')
    })
  })

  it.each([
    ['throws', fail],
    ['returns another shape', () => true],
    ['returns null', () => null],
  ])('is next(error) if catchUp %s', async (_, behind) => {
    const list = new LateDenylist()
    const auth = authsFor(list)[kind]
    const receiver = await startBehind(express, auth)
    const remembered = issuer.token()
    await receiver.call(remembered)
    list.behind = behind
    for (const token of [remembered, issuer.token()]) {
      expect((await receiver.call(token)).status).toBe(FAULT_STATUS)
    }
    expect(receiver.errors).toHaveLength(2)
    const fault = { code: 'internal', message: expect.stringMatching(/denylist/) }
    for (const error of receiver.errors) expectOwnError(error, fault)
  })
})

describe.each(EXPRESS_MAJORS)('a session, on $major', ({ express }) => {
  async function open() {
    const list = new LateDenylist()
    const session = { getHandle: () => 'handle' }
    const credential = sessionCredential<{ getHandle(): string }>(
      (request, _response, next) => {
        Object.assign(request, { session })
        next()
      },
      { denylist: list, issuer: issuer.url },
    )
    const gate = acceptOneOf([{ name: 'user', ...credential }])
    const receiver = await startBehind(express, gate)
    const token = issuer.token({}, { version: '5' })
    return { list, receiver, call: async () => (await receiver.call(token)).status }
  }

  it.each([
    ['resolves', () => {}],
    ['rejects', fail],
  ])('waits for a denylist whose promise %s', async (_, end) => {
    const { list, call } = await open()
    list.deniesMeanwhile(end)
    expect(await call()).toBe(401)
    list.allow('keys', issuer.kid)
    list.behind = async () => end()
    expect(await call()).toBe(200)
  })

  it('is next(error) if catchUp throws or returns another shape', async () => {
    const { list, receiver, call } = await open()
    for (const behind of [fail, () => 'soon']) {
      list.behind = behind
      expect(await call()).toBe(FAULT_STATUS)
    }
    for (const error of receiver.errors) expectOwnError(error, { code: 'internal' })
  })
})

it('catchUp must be a function', () => {
  const denylist = Object.assign(new ManualDenylist(), { catchUp: true }) as unknown as LiveDenylist
  expect(() => serviceAuth(issuer.policy({ denylist }))).toThrow(/catchUp/)
})
