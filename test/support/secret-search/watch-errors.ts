import { chai } from 'vitest'
import { recordOutput } from './session.js'

/** The matchers that tests use on errors. */
const ASSERTIONS = [
  'toBe',
  'toBeInstanceOf',
  'toEqual',
  'toHaveProperty',
  'toMatchInlineSnapshot',
  'toMatchObject',
  'toMatchSnapshot',
  'toSatisfy',
  'toStrictEqual',
]
const THROWING = ['toThrow', 'toThrowError']

type Assertion = (this: object, ...parameters: unknown[]) => unknown

/** Records an error and its causes with all members, also those that are not enumerable. */
const recordError = (error: unknown): void => recordOutput('an error', error)

function recordErrorsOf(value: unknown): void {
  for (const each of Array.isArray(value) ? value : [value]) {
    if (each instanceof Error) recordError(each)
  }
}

/** Records each error on which a test asserts, thrown and rejected ones included. */
export function watchErrors(): void {
  chai.use(({ Assertion: { prototype } }, { flag, overwriteMethod }) => {
    const before = (name: string, look: (assertion: object) => void): void =>
      overwriteMethod(prototype, name, ((original: Assertion): Assertion => {
        return function (...parameters) {
          look(this)
          return original.apply(this, parameters)
        }
      }) as Parameters<typeof overwriteMethod>[2])

    for (const name of ASSERTIONS) {
      before(name, (assertion) => recordErrorsOf(flag(assertion as never, 'object')))
    }
    for (const name of THROWING) {
      before(name, (assertion) => {
        const subject: unknown = flag(assertion as never, 'object')
        const isCalled = typeof subject === 'function' && !flag(assertion as never, 'promise')
        if (!isCalled) recordErrorsOf(subject)
        else flag(assertion as never, 'object', recordingErrors(subject as () => unknown))
      })
    }
  })
}

function recordingErrors(call: () => unknown): () => unknown {
  return () => {
    try {
      return call()
    } catch (error) {
      recordErrorsOf(error)
      throw error
    }
  }
}
