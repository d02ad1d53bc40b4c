import { type LiveDenylist, ServiceAuthError } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { FAULT_STATUS } from '../support/receiver/open-receiver.js'
import { expectOwnError } from '../support/receiver/own-error.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { ManualDenylist } from '../support/stores/manual-denylist.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

const odd = Object.assign(new Error('odd'), { status: 401, statusCode: 200, headers: { a: 'b' } })
const all = { keys: new Set(), callers: new Set(), tokenIds: new Set() }

const throwing = (thrown: unknown) => () => {
  throw thrown
}

const FAULTS: Record<string, (issuer: string) => unknown> = {
  'that throws': throwing(odd),
  'that throws nothing': throwing(undefined),
  'that throws what says it is a 503': throwing(new ServiceAuthError('unavailable', 'x')),
  'that rejects': async () => throwing(odd)(),
  'that returns text': () => 'all',
}

class BrokenDenylist extends ManualDenylist {
  broken: ((issuer: string) => unknown) | undefined
  override lists(issuer: string): ReturnType<LiveDenylist['lists']> {
    if (this.broken === undefined) return super.lists(issuer)
    return this.broken(issuer) as ReturnType<LiveDenylist['lists']>
  }
}

describe.each(EXPRESS_MAJORS)('a live denylist, on $major', ({ express }) => {
  it.each(Object.entries(FAULTS))(
    '%s is next(error), whether the token is remembered or not, and whatever others deny',
    async (_name, broken) => {
      const [list, other] = [new BrokenDenylist(), new ManualDenylist()]
      const auth = authFor(issuer.policy({ denylist: [other, list] }))
      const receiver = await startReceiver({ express, mount: (app) => app.use(auth) })
      const token = issuer.token()
      expect((await receiver.call(token)).status).toBe(200)
      list.broken = broken
      for (const sent of [token, issuer.token(), issuer.token({ sub: 'stranger' })]) {
        expect((await receiver.call(sent)).status).toBe(FAULT_STATUS)
      }
      other.deny('keys', issuer.kid)
      expect((await receiver.call(token)).status).toBe(FAULT_STATUS)
      other.isKnown = false
      expect((await receiver.call(token)).status).toBe(FAULT_STATUS)
      expect(receiver.handled).toBe(1)
      expect(receiver.errors).toHaveLength(5)
      const fault = { code: 'internal', message: expect.stringMatching(/denylist/) }
      for (const error of receiver.errors) expectOwnError(error, fault)
      other.allow('keys', issuer.kid)
      other.isKnown = true
      list.broken = undefined
      expect((await receiver.call(token)).status).toBe(200)
    },
  )

  it('that throws is the cause of the error, and one of another shape is told', async () => {
    const list = new BrokenDenylist()
    const auth = authFor(issuer.policy({ denylist: list }))
    const receiver = await startReceiver({ express, mount: (app) => app.use(auth) })
    list.broken = throwing(odd)
    await receiver.call(issuer.token())
    list.broken = () => ({ ...all, keys: [] })
    await receiver.call(issuer.token())
    expect(receiver.errors).toMatchObject([
      { cause: odd },
      { cause: { message: expect.stringMatching(/has is not a function/) } },
    ])
  })
})
