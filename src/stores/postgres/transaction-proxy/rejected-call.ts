import { isCallback } from './proxied-values.js'

/** The transaction of a request, or something made from it, was used after the answer was complete. */
export class TransactionEndedError extends Error {
  override readonly name = 'TransactionEndedError'

  /** Used by the transaction's proxy. */
  constructor() {
    super(
      'The transaction of this request has ended: await everything that uses it before the answer is sent.',
    )
  }
}

export const PROMISE_FUNCTIONS: ReadonlySet<PropertyKey> = new Set<PropertyKey>([
  'then',
  'catch',
  'finally',
])

const REFUSALS = new WeakSet<object>()

interface RefusedCall {
  readonly name: PropertyKey
  readonly values: readonly unknown[]
}

/** A custom query for pg's client, such as `Query` or a cursor. */
interface Submittable {
  submit(connection: unknown): unknown
  handleError(error: Error): void
}

/**
 * Returns the result of a refused call: a rejected promise. A query of pg that reports its end by a callback,
 * or by itself, reports the error in the same way as pg, because its caller would ignore a promise.
 */
export function refuseCall(error: Error, { name, values }: RefusedCall): unknown {
  // Drizzle passes the result of one refused call to the next, which reports both.
  for (const value of values) if (REFUSALS.has(Object(value))) Object(value).catch(() => {})
  if (name !== 'query') return rejectedPromise(error)
  const [query] = values
  if (isSubmittable(query)) {
    process.nextTick(() => query.handleError(error))
    return query
  }
  const callback = values.find(isCallback) ?? Object(query).callback
  if (!isCallback(callback)) return rejectedPromise(error)
  process.nextTick(callback, error)
  return undefined
}

function isSubmittable(query: unknown): query is Submittable {
  const { submit, handleError } = Object(query) as Partial<Submittable>
  return typeof submit === 'function' && typeof handleError === 'function'
}

/** Returns a rejected promise. If a chain of calls continues on it, it throws the error immediately. */
export function rejectedPromise(error: Error): object {
  const rejected = Promise.reject(error)
  const refusal = new Proxy(rejected, {
    get: (_rejected, name) => {
      if (PROMISE_FUNCTIONS.has(name)) return Reflect.get(rejected, name).bind(rejected)
      if (name === 'constructor' || name === Symbol.toStringTag) return Reflect.get(rejected, name)
      // The chain gets the error here, so that the promise needs no handler.
      rejected.catch(() => {})
      throw error
    },
  })
  REFUSALS.add(refusal)
  return refusal
}
