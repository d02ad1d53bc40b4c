import type { NextFunction, Request, Response } from 'express'
import { describe, expect, it, vi } from 'vitest'
import { allow, type Decision, deny } from '../../src/base/decision/reason.js'
import { ServiceAuthError, wrongWiring } from '../../src/base/decision/service-auth-error.js'
import { admittingHandler } from '../../src/middleware/guard.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { startReceiver } from '../support/receiver/receiver.js'

type Decide = () => Decision<string> | Promise<Decision<string>>

const guardOf = (decide: Decide, accept = (): object => ({})) =>
  admittingHandler<string>({
    by: 'serviceAuth',
    decide,
    accept,
    observers: () => [],
    dependencies: () => [],
    schemes: () => 'Bearer',
  })

/** What becomes of a decision on a request that nobody but the guard has touched. */
async function outcomeOf(decide: Decide, accept?: () => object) {
  const answered: unknown[] = []
  const response = {
    req: { method: 'GET' },
    headersSent: false,
    setHeader() {},
    end: (body: unknown) => answered.push(body),
  } as unknown as Response
  const passed = await new Promise<unknown[]>((resolve) => {
    const next: NextFunction = (...args: unknown[]) => resolve(args)
    void guardOf(decide, accept)({ rawHeaders: [] as string[] } as Request, response, next)
    setImmediate(() => setImmediate(() => resolve(['nothing'])))
  })
  return { passed, status: answered.length === 0 ? undefined : response.statusCode }
}

describe('a guard', () => {
  it('passes on a failure to accept as an error, and does not let the request pass', async () => {
    const accept = (): never => {
      throw wrongWiring('no')
    }
    for (const decide of [() => allow('x'), async () => allow('x')]) {
      const { passed } = await outcomeOf(decide, accept)
      expect(passed).toEqual([expect.any(ServiceAuthError)])
    }
  })

  it.each(EXPRESS_MAJORS)('leaves what a later handler throws to $major', async ({ express }) => {
    const thrown = new Error('the handler')
    const receiver = await startReceiver({
      express,
      mount: (app) =>
        app.use(
          guardOf(() => allow('x')),
          guardOf(async () => allow('x')),
        ),
      handler() {
        throw thrown
      },
    })
    await receiver.call()
    expect(receiver.errors).toEqual([thrown])
  })

  it.each(EXPRESS_MAJORS)(
    'reports a response that has begun before the decision, on $major',
    async ({ express }) => {
      const next = vi.fn()
      const receiver = await startReceiver({
        express,
        mount(app) {
          app.use(async (request, response) => {
            response.end('early')
            await guardOf(async () => deny('token_expired'))(request, response, next)
          })
        },
      })
      expect((await receiver.call()).text).toBe('early')
      await vi.waitFor(() =>
        expect(next).toHaveBeenCalledExactlyOnceWith(expect.any(ServiceAuthError)),
      )
    },
  )
})
