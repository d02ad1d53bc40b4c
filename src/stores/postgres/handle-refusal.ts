import { isCallback } from './handle-values.js'

/** A promise is listened to by these: alone of all functions, they get callbacks of results. */
export const PROMISE_FUNCTIONS = new Set<PropertyKey>(['then', 'catch', 'finally'])

/** What pg calls a submittable: a query object, such as `Query` or a cursor, that hears of its own error. */
interface Submittable {
  submit(connection: unknown): void
  handleError(error: Error): void
}

/**
 * Lets a call fail as the library would: by the callback of pg's `query` or by its query object, where
 * there is one, and else with a rejection. Who gave a callback catches no rejection, which would end the process.
 */
export function failCall(error: Error, name: PropertyKey, values: readonly unknown[]): unknown {
  if (name !== 'query') return refuse(error)
  const [first, last] = [values[0], values.at(-1)]
  if (isCallback(last)) {
    process.nextTick(last, error)
    return undefined
  }
  if (isSubmittable(first)) {
    process.nextTick(() => first.handleError(error))
    return first
  }
  return refuse(error)
}

function isSubmittable(value: unknown): value is Submittable {
  const { submit, handleError } = Object(value) as Partial<Submittable>
  return typeof submit === 'function' && typeof handleError === 'function'
}

/** A promise that is rejected; also what a chain of calls goes on with, where it fails at once. */
export function refuse(error: Error): object {
  const rejected = Promise.reject(error)
  return new Proxy(rejected, {
    get: (_rejected, name) => {
      if (PROMISE_FUNCTIONS.has(name)) return Reflect.get(rejected, name).bind(rejected)
      if (name === 'constructor' || name === Symbol.toStringTag) return Reflect.get(rejected, name)
      // Whoever goes on with the chain learns it here, and needs no promise beside it.
      rejected.catch(() => {})
      throw error
    },
  })
}
