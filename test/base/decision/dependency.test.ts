import { beforeEach, expect, it, type MockInstance, vi } from 'vitest'
import { DependencyError, dependencyOf } from '../../../src/base/decision/dependency.js'

let warned: MockInstance<typeof process.emitWarning>
beforeEach(() => {
  warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
})

const report = { message: 'it failed', isObserved: false }

it('is one for each object and kind', () => {
  const object = {}
  expect(dependencyOf('store', object)).toBe(dependencyOf('store', object))
  dependencyOf('store', object).failed(report)
  dependencyOf('denylist', object).failed(report)
  dependencyOf('store', {}).failed(report)
  expect(warned).toHaveBeenCalledTimes(3)
})

it.each([
  ['key_set', 'SERVICE_AUTH_KEY_SET_UNAVAILABLE', 'address in the policy'],
  ['denylist', 'SERVICE_AUTH_DENYLIST_UNAVAILABLE', 'ready()'],
  ['store', 'SERVICE_AUTH_STORE_UNAVAILABLE', 'check()'],
  ['core', 'SERVICE_AUTH_CORE_UNAVAILABLE', 'API key'],
  ['tokens', 'SERVICE_AUTH_TOKENS_UNAVAILABLE', '32 or more visible ASCII characters'],
  ['limiter', 'SERVICE_AUTH_LIMITER_UNAVAILABLE', 'msBeforeNext'],
  ['users', 'SERVICE_AUTH_USERS_UNAVAILABLE', 'undefined for a user'],
] as const)('warns of the first failure of a %s that is not observed', (kind, code, remedy) => {
  const dependency = dependencyOf(kind, {})
  expect(dependency.kind).toBe(kind)
  dependency.failed({ ...report, isObserved: true })
  expect(warned).not.toHaveBeenCalled()
  dependency.failed(report)
  dependency.failed(report)
  const text = /^express-service-auth: it failed\. .*logDecisions\(console\)\.$/
  expect(warned.mock.calls).toEqual([
    [expect.stringMatching(text), { type: 'ServiceAuthWarning', code }],
  ])
  expect(warned.mock.calls[0]?.[0]).toContain(remedy)
})

it('is named by the error of a denylist, but is not among its properties', () => {
  const dependency = dependencyOf('denylist', {})
  const cause = new TypeError('no lists')
  const error = new DependencyError(dependency, 'it failed', { cause })
  expect(error).toMatchObject({ code: 'internal', message: 'it failed', cause })
  expect(error.dependency).toBe(dependency)
  expect(Object.keys(error)).not.toContain('dependency')
})
