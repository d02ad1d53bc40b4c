import { requireAnyPermission, requirePermissions } from 'express-service-auth'
import { afterAll, describe, expect, it } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { collectEvents } from '../support/observe/channel-events.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startBehind, startReceiver } from '../support/receiver/receiver.js'
import { FORBIDDEN } from '../support/receiver/refusal-bytes.js'

const issuer = await createTestIssuer()
afterAll(() => issuer.close())

describe.each([requirePermissions, requireAnyPermission])('%o', (require) => {
  it('needs at least one name', () => {
    expect(() => (require as () => unknown)()).toThrow(TypeError)
  })

  it.each([undefined, null, '', 1, ['orders:read'], {}, /x/])('takes no %j for a name', (name) => {
    expect(() => require('a', name as string)).toThrow(/names\[1\]/)
    expect(() => require(name as string)).toThrow(TypeError)
  })
})

describe('requirePermissions', () => {
  it.each(EXPRESS_MAJORS)(
    'wants all of its names, to the letter, on $major',
    async ({ express }) => {
      const receiver = await startBehind(
        express,
        authFor(issuer.policy()),
        requirePermissions('a', 'b', '__proto__'),
      )
      const ask = (...permissions: string[]): Promise<string> =>
        receiver.rawWith(`Bearer ${issuer.token({ permissions })}`)
      expect(await ask('b', '__proto__', 'a', 'c')).toContain(' 200 OK')
      for (const held of [['a', 'b'], ['A', 'b', '__proto__'], ['a,b,__proto__'], ['*'], []]) {
        expect(await ask(...held)).toBe(FORBIDDEN)
      }
    },
  )

  it.each(EXPRESS_MAJORS)(
    'stands in a route or a router as well, on $major',
    async ({ express }) => {
      const receiver = await startReceiver({
        express,
        mount(app) {
          const router = express.Router()
          router.get('/deep', requirePermissions('orders:read'), (_request, response) => {
            response.send('deep')
          })
          router.use('/none', requirePermissions('nobody:has'))
          app.use(authFor(issuer.policy()))
          app.use('/router', router)
        },
      })
      const ask = (path: string) => receiver.call(issuer.token(), { path })
      expect((await ask('/router/deep')).text).toBe('deep')
      expect((await ask('/router/none')).status).toBe(403)
    },
  )
})

describe('requireAnyPermission', () => {
  it.each(EXPRESS_MAJORS)('wants one of its names, on $major', async ({ express }) => {
    const events = collectEvents('decision')
    const any = requireAnyPermission('a', 'b')
    const receiver = await startBehind(express, authFor(issuer.policy()), any)
    const ask = (...permissions: string[]): Promise<string> =>
      receiver.rawWith(`Bearer ${issuer.token({ permissions })}`)
    for (const one of [['a'], ['b', 'c'], ['a', 'b']]) {
      expect(await ask(...one)).toContain(' 200 OK')
    }
    for (const none of [['A'], ['a b'], ['c'], []]) expect(await ask(...none)).toBe(FORBIDDEN)
    expect(events.at(-1)).toEqual({
      outcome: 'refused',
      reason: 'permission_missing',
      status: 403,
      by: 'requireAnyPermission',
      permission: 'a b',
      caller: 'billing',
      keyId: issuer.kid,
    })
  })
})
