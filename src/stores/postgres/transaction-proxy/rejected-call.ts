import { isCallback } from './proxied-values.js'

export const PROMISE_FUNCTIONS: ReadonlySet<PropertyKey> = new Set<PropertyKey>([
  'then',
  'catch',
  'finally',
])

const REFUSALS = new WeakSet<object>()

/** A call that is not made. */
export interface RefusedCall {
  readonly name: PropertyKey
  readonly values: readonly unknown[]
}

/** A query of its own for the client of pg, such as `Query` or a cursor. */
interface Submittable {
  submit(connection: unknown): unknown
  handleError(error: Error): void
}

/**
 * What a refused call returns: a promise that is rejected. A query of pg that tells its end by a callback, or
 * by itself, does so as pg would: nobody would hear of a promise.
 */
export function refuseCall(error: Error, { name, values }: RefusedCall): unknown {
  // Drizzle hands the result of one refused call to the next, which tells of both.
  for (const value of values) if (REFUSALS.has(Object(value))) Object(value).catch(() => {})
  if (name !== 'query') return refuse(error)
  const [query] = values
  if (isSubmittable(query)) {
    process.nextTick(() => query.handleError(error))
    return query
  }
  const callback = values.find(isCallback) ?? Object(query).callback
  if (!isCallback(callback)) return refuse(error)
  process.nextTick(callback, error)
  return undefined
}

function isSubmittable(query: unknown): query is Submittable {
  const { submit, handleError } = Object(query) as Partial<Submittable>
  return typeof submit === 'function' && typeof handleError === 'function'
}

/** A promise that is rejected; also what a chain of calls goes on with, where it fails at once. */
export function refuse(error: Error): object {
  const rejected = Promise.reject(error)
  const refusal = new Proxy(rejected, {
    get: (_rejected, name) => {
      if (PROMISE_FUNCTIONS.has(name)) return Reflect.get(rejected, name).bind(rejected)
      if (name === 'constructor' || name === Symbol.toStringTag) return Reflect.get(rejected, name)
      // Whoever goes on with the chain learns it here, and needs no promise beside it.
      rejected.catch(() => {})
      throw error
    },
  })
  REFUSALS.add(refusal)
  return refusal
}
