import { types } from 'node:util'
import { createPendingCalls, IGNORE, type PendingCallObserver } from './pending-calls.js'
import {
  isCallback,
  isListenerRemoval,
  isNativePromise,
  isProxy,
  isThenable,
  isUnrelated,
  needsProxy,
  PROXY_TARGET,
  proxyTarget,
  unwrap,
} from './proxied-values.js'
import {
  PROMISE_FUNCTIONS,
  refuseCall,
  rejectedPromise,
  TransactionEndedError,
} from './rejected-call.js'
import { controlsTransaction } from './transaction-control.js'

export interface RevocableTransaction<Tx> {
  /** Behaves like `tx` until it is revoked. */
  readonly transaction: Tx
  /**
   * Refuses new calls. Results of earlier calls can still be awaited until `revoke`, because some libraries
   * send a query only when it is awaited, one turn of the microtasks later.
   */
  stop(): void
  /** Makes the proxy, and everything that was made from it, fail with `TransactionEndedError`. */
  revoke(): void
  /**
   * Resolves when the calls made so far have been answered. A library may send several statements for one
   * call; it sends the later ones on its own object, not on the proxy.
   */
  callsSettled(): Promise<void>
}

type Callable = (...values: unknown[]) => unknown

/** The name of a function, and the object that it was read from. */
interface Member {
  readonly owner: object | undefined
  readonly name: PropertyKey
}

interface Arguments {
  readonly self: unknown
  readonly values: unknown[]
}

interface Callback {
  /** The function that the library calls instead. */
  readonly guarded: Callable
  /** Functions that reject the calls with this callback. */
  readonly abandon: Set<(reason: unknown) => void>
}

const CONTROL_REFUSED =
  'The transaction of a request begins before its handler and ends with its answer: a handler neither begins, commits nor rolls it back, nor gives its connection away. Savepoints are allowed; to roll back, throw or answer with a status of 400 or more.'

/**
 * Wraps the library's transaction object in a proxy. A value that has functions is wrapped too if it is read
 * from a wrapped object, returned by its functions or passed to its callbacks. Rows and other data are not
 * wrapped. A refused call returns a rejected promise, so that a `catch` of its caller handles it.
 */
export function revocableTransaction<Tx>(
  tx: Tx,
  observer: PendingCallObserver = IGNORE,
): RevocableTransaction<Tx> {
  const { wrap, ...ends } = createMembrane(observer)
  const isObject = (typeof tx === 'object' && tx !== null) || typeof tx === 'function'
  return { transaction: isObject ? (wrap(tx) as Tx) : tx, ...ends }
}

function createMembrane(observer: PendingCallObserver) {
  let isStopped = false
  let isRevoked = false
  const objects = new WeakMap<object, object>()
  const methods = new WeakMap<object, WeakMap<object, object>>()
  const callbacks = new WeakMap<object, Callback>()
  const pending = createPendingCalls(observer)

  /** An object always has the same proxy; a function has one for each owner. */
  function wrap(target: object, member: Member = { owner: undefined, name: '' }): object {
    if (isProxy(target)) return target
    const cache = cacheOf(member.owner)
    const cached = cache.get(target)
    if (cached) return cached
    const proxy = createProxy(target, member)
    cache.set(target, proxy)
    return proxy
  }

  function cacheOf(owner: object | undefined): WeakMap<object, object> {
    if (owner === undefined) return objects
    const cached = methods.get(owner) ?? new WeakMap<object, object>()
    methods.set(owner, cached)
    return cached
  }

  /** The proxy's own target is empty, because the members of a frozen target could not be replaced. */
  function createProxy(target: object, member: Member): object {
    const own = proxyTarget(target)
    return new Proxy(typeof target === 'function' ? () => {} : {}, {
      apply: (_empty, self, values) => call(target as Callable, member, { self, values }),
      get: (_empty, name) =>
        name === PROXY_TARGET ? own : memberOf(target, name, Reflect.get(target, name, target)),
      set: (_empty, name, value) => {
        if (isStopped) throw endedError()
        return Reflect.set(target, name, unwrap(value), target)
      },
      has: (_empty, name) => Reflect.has(target, name),
      ownKeys: () => Reflect.ownKeys(target),
      deleteProperty: (_empty, name) => Reflect.deleteProperty(target, name),
      defineProperty: (_empty, name, descriptor) =>
        Reflect.defineProperty(target, name, { ...descriptor, configurable: true }),
      getPrototypeOf: () => Reflect.getPrototypeOf(target),
      setPrototypeOf: () => false,
      preventExtensions: () => false,
      getOwnPropertyDescriptor: (_empty, name) => {
        const descriptor = Reflect.getOwnPropertyDescriptor(target, name)
        if (descriptor === undefined) return undefined
        const value = memberOf(target, name, Reflect.get(target, name, target))
        const { enumerable = false } = descriptor
        return { value, enumerable, writable: true, configurable: true }
      },
    })
  }

  function memberOf(owner: object, name: PropertyKey, value: unknown): unknown {
    if (name === 'constructor') return value
    if (!needsProxy(value)) {
      // A prototype's function that is called on the proxy would use this data, for example a queue.
      if (isStopped && typeof value === 'object' && value !== null) throw endedError()
      return value
    }
    return typeof value === 'function' ? wrap(value, { owner, name }) : wrap(value)
  }

  function call(target: Callable, { owner, name }: Member, args: Arguments): unknown {
    const isListening = PROMISE_FUNCTIONS.has(name) && args.values.some(isCallback)
    const refusing = { name, values: args.values }
    const isLate = isListening ? isRevoked : isStopped
    if (isLate && !isListenerRemoval(owner, name)) {
      if (!isListening) return refuseCall(endedError(), refusing)
      const refused = rejectedPromise(endedError())
      return Reflect.apply(Reflect.get(refused, name), refused, args.values)
    }
    const self = owner ?? unwrap(args.self)
    // A promise resolves to a result, so its listeners get it unchanged.
    if (isListening) {
      const listening = { name, listeners: args.values }
      return pending.listen(listening, (listeners) => Reflect.apply(target, self, listeners))
    }
    const values = args.values.map(argumentOf)
    if (controlsTransaction({ owner: self, name, arguments: values })) {
      return refuseCall(new Error(CONTROL_REFUSED), refusing)
    }
    const result = Reflect.apply(target, self, values)
    if (isUnrelated(self, name)) return result
    if (!isNativePromise(result)) return wrapIfNeeded(result)
    // `connect` of TypeORM's query runner resolves to its connection, not to a result.
    const settled = name === 'connect' ? result.then(wrapIfNeeded) : result
    const originals = args.values.filter(isOwnCallback)
    return originals.length === 0 ? pending.count(settled) : untilAbandoned(settled, originals)
  }

  function endedError(): TransactionEndedError {
    observer.refused()
    return new TransactionEndedError()
  }

  const wrapIfNeeded = (value: unknown): unknown => (needsProxy(value) ? wrap(value) : value)

  const argumentOf = (value: unknown): unknown =>
    isOwnCallback(value) ? callbackOf(value).guarded : unwrap(value)

  /** Returns the same callback for the same function, so that a listener can be removed again. */
  function callbackOf(original: Callable): Callback {
    const cached = callbacks.get(original)
    if (cached) return cached
    const abandon: Callback['abandon'] = new Set()
    function guarded(this: unknown, ...values: unknown[]): unknown {
      // pg calls back with its error first.
      if (types.isNativeError(values[0])) observer.failed(values[0])
      const result = unwrap(original.apply(wrapIfNeeded(this), values.map(wrapIfNeeded)))
      return isThenable(result) ? unlessEnded(result) : result
    }
    const unlessEnded = (result: PromiseLike<unknown>): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const pass = (settle: (value: unknown) => void) => (value: unknown) => {
          if (!isStopped) return settle(unwrap(value))
          // The library would now end a savepoint, on a connection that another request has.
          for (const rejectCall of abandon) rejectCall(new TransactionEndedError())
        }
        result.then(pass(resolve), pass(reject))
      })
    const callback = { guarded, abandon }
    callbacks.set(original, callback)
    return callback
  }

  function untilAbandoned(result: Promise<unknown>, originals: Callable[]): Promise<unknown> {
    const lists = originals.map((original) => callbackOf(original).abandon)
    return new Promise((resolve, reject) => {
      for (const list of lists) list.add(reject)
      const forget = (): void => {
        for (const list of lists) list.delete(reject)
      }
      void result.then(resolve, reject).then(forget)
    })
  }

  const stop = (): void => {
    isStopped = true
  }
  const revoke = (): void => {
    isStopped = true
    isRevoked = true
  }
  return { wrap, stop, revoke, callsSettled: pending.allSettled }
}

function isOwnCallback(value: unknown): value is Callable {
  return isCallback(value) && !isProxy(value)
}
