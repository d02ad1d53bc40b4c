import { types } from 'node:util'

/** The transaction of a request, or something made from it, was used after the answer was complete. */
export class TransactionEndedError extends Error {
  override readonly name = 'TransactionEndedError'

  /** Used by the transaction's guard. */
  constructor() {
    super(
      'The transaction of this request has ended: await everything that uses it before the answer is sent.',
    )
  }
}

/** Callbacks for the results of the calls on a guarded transaction. */
export interface GuardObserver {
  succeeded(): void
  failed(error: unknown): void
  /** Called when a call after the answer is refused. */
  refused(): void
}

export interface GuardedTransaction<Tx> {
  /** Behaves like `tx` until `stop`. */
  readonly transaction: Tx
  /**
   * Refuses new calls with `TransactionEndedError`. Results of earlier calls can still be awaited until `revoke`,
   * because some libraries send a query only when it is awaited, one turn of the microtasks later.
   */
  stop(): void
  /** Makes the transaction, and everything that was made from it, fail. */
  revoke(): void
  /** Resolves when the calls made so far have been answered. */
  callsSettled(): Promise<void>
}

type Callable = (...values: unknown[]) => unknown

/** The name of a function, and the object that it was read from. */
interface Member {
  readonly owner: object | undefined
  readonly name: PropertyKey
}

const CONTROL_REFUSED =
  'The transaction of a request begins before its handler and ends with its answer: a handler neither begins, commits nor rolls it back, nor gives its connection away. Savepoints are allowed; to roll back, throw or answer with a status of 400 or more.'

const IGNORE: GuardObserver = { succeeded() {}, failed() {}, refused() {} }

/** The objects behind all guards. */
const TARGETS = new WeakMap<object, object>()

/**
 * Guards the library's transaction object, and what is read from it, returned by its functions or passed to its
 * callbacks; rows and other data stay as they are. A refused call returns a rejected promise, so that a `catch` of
 * its caller handles it. It guards against mistakes: a function taken from a prototype gets around it.
 */
export function guardTransaction<Tx>(
  tx: Tx,
  observer: GuardObserver = IGNORE,
): GuardedTransaction<Tx> {
  let isStopped = false
  let isRevoked = false
  /** Reject the answers of nested transactions. */
  const endNested: ((reason: Error) => void)[] = []
  const guards = new WeakMap<object, object>()
  const callbacks = new WeakMap<Callable, Callable>()
  const underWay = new Set<Promise<unknown>>()

  function guard(target: object, member?: Member): object {
    const known = TARGETS.has(target) ? target : member === undefined && guards.get(target)
    if (known) return known
    const made = new Proxy(target, {
      get: (_target, name) => read(target, name),
      apply: (_target, self, values) =>
        call(target as Callable, member ?? { owner: unwrap(self) as object, name: '' }, values),
    })
    TARGETS.set(made, target)
    if (member === undefined) guards.set(target, made)
    return made
  }

  function read(target: object, name: PropertyKey): unknown {
    const value: unknown = Reflect.get(target, name, target)
    if (name === 'constructor' || !isObject(value)) return value
    if (isListening(name) && typeof value === 'function') return listen(target, name)
    if (isData(value)) {
      // A prototype's function that is called on the guard would use this data, for example a queue.
      if (isStopped) throw ended()
      return value
    }
    const own = Reflect.getOwnPropertyDescriptor(target, name)
    if (own?.configurable === false && own.writable === false) return value
    return typeof value === 'function' ? guard(value, { owner: target, name }) : guard(value)
  }

  /** `then` of a lazy query sends it. */
  function listen(query: object, name: 'then' | 'catch' | 'finally') {
    return (...listeners: never[]): unknown => {
      const answer = isRevoked
        ? Promise.reject(ended())
        : count(new Promise((resolve, reject) => (query as Promise<unknown>).then(resolve, reject)))
      return Reflect.apply(answer[name], answer, listeners)
    }
  }

  function call(target: Callable, { owner, name }: Member, given: readonly unknown[]): unknown {
    if (isStopped && !(isRemoval(name) && has(owner, 'emit'))) {
      return refuse(ended(), { name, given })
    }
    const values = given.map((value) =>
      isCallback(value) ? guardedCallback(value) : unwrap(value),
    )
    if (controlsTransaction(owner, name, values[0])) {
      return refuse(new Error(CONTROL_REFUSED), { name, given })
    }
    const result = Reflect.apply(target, owner, values)
    if (isUnrelated(owner, name)) return result
    if (!isNativePromise(result)) return guardResult(result)
    const answer = given.some(isCallback) ? unlessRevoked(result) : result
    // `connect` of TypeORM's query runner resolves to its connection, not to a result.
    return count(name === 'connect' ? answer.then(guardResult) : answer)
  }

  /** A nested transaction that outlives the answer must end nothing on a connection that another request has. */
  const unlessRevoked = (nested: Promise<unknown>): Promise<unknown> =>
    new Promise((resolve, reject) => {
      endNested.push(reject)
      nested.then(resolve, reject)
    })

  /** Returns the derived promise, because a rejection that the caller does not handle must stay unhandled. */
  function count(answer: Promise<unknown>): Promise<unknown> {
    underWay.add(answer)
    return answer.then(
      (value) => {
        underWay.delete(answer)
        observer.succeeded()
        return value
      },
      (error) => {
        underWay.delete(answer)
        observer.failed(error)
        throw error
      },
    )
  }

  /** The same for the same function, so that a listener can be removed again. */
  function guardedCallback(original: Callable): Callable {
    const known = callbacks.get(original)
    if (known) return known
    function guarded(this: unknown, ...values: unknown[]): unknown {
      // pg calls back with its error first.
      if (types.isNativeError(values[0])) observer.failed(values[0])
      const result = unwrap(original.apply(this, values.map(guardResult)))
      if (!isObject(result) || !has(result, 'then')) return result
      const passOn = (value: unknown): unknown =>
        isRevoked ? new Promise(() => {}) : unwrap(value)
      return (result as Promise<unknown>).then(passOn, async (error) => {
        await passOn(undefined)
        throw error
      })
    }
    callbacks.set(original, guarded)
    return guarded
  }

  const guardResult = (value: unknown): unknown =>
    isObject(value) && !isData(value) && !isRow(value) ? guard(value) : value

  function ended(): TransactionEndedError {
    observer.refused()
    return new TransactionEndedError()
  }

  return {
    transaction: isObject(tx) ? (guard(tx) as Tx) : tx,
    stop() {
      isStopped = true
    },
    revoke() {
      isStopped = true
      isRevoked = true
      for (const end of endNested.splice(0)) end(new TransactionEndedError())
    },
    async callsSettled() {
      while (underWay.size > 0) await Promise.allSettled(underWay)
    },
  }
}

/** Returns a rejected promise. If a chain of calls continues on it, it throws the error immediately. */
function refuse(
  error: Error,
  { name, given }: { readonly name: PropertyKey; readonly given: readonly unknown[] },
): unknown {
  if (name === 'query') {
    // A query of pg that reports its end by a callback, or by itself: its caller would ignore a promise.
    const [query] = given
    const { submit, handleError, callback } = Object(query)
    if (typeof submit === 'function' && typeof handleError === 'function') {
      process.nextTick(() => Object(query).handleError(error))
      return query
    }
    const report = given.find(isCallback) ?? callback
    if (isCallback(report)) {
      process.nextTick(report, error)
      return undefined
    }
  }
  const rejected = Promise.reject(error)
  return new Proxy(rejected, {
    get(_rejected, key) {
      if (isListening(key)) return Reflect.get(rejected, key).bind(rejected)
      if (key === 'constructor' || key === Symbol.toStringTag) return Reflect.get(rejected, key)
      // The chain gets the error here, so that the promise needs no handler.
      rejected.catch(() => {})
      throw error
    },
  })
}

const GAP = String.raw`(?:[\s;]|--[^\n\r]*(?:[\n\r]|$)|/\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*\*/)*\*/)`

/** A text that begins with a command that begins or ends a transaction; comments may nest once. */
const TRANSACTION_COMMAND = new RegExp(
  `^${GAP}*(?:begin|commit|end|abort|(?:start|prepare)${GAP}+transaction|` +
    `rollback(?!${GAP}+(?:(?:work|transaction)${GAP}+)?to\\b))\\b`,
  'i',
)

// Enough for a long comment before the statement.
const MAX_READ_CHARACTERS = 10_000

export const isTransactionCommand = (text: string): boolean =>
  TRANSACTION_COMMAND.test(text.slice(0, MAX_READ_CHARACTERS))

/** Functions that end a transaction, on any object. */
const TRANSACTION_ENDS = new Set<PropertyKey>([
  'commitTransaction',
  'rollbackTransaction',
  '$disconnect',
])

/** Library functions whose first argument is SQL. */
const SQL_FUNCTION =
  /^(?:query|unsafe|execute|executeQuery|streamQuery|\$(?:query|execute)Raw(?:Unsafe)?)$/

/** Whether the call would begin or end the transaction that the store controls, or release its connection. */
function controlsTransaction(owner: unknown, name: PropertyKey, first: unknown): boolean {
  if (TRANSACTION_ENDS.has(name)) return true
  if (name === 'release' || name === 'end') return has(owner, 'query') || has(owner, 'unsafe')
  // postgres.js: ends the transaction with `prepare transaction`.
  if (name === 'prepare') return has(owner, 'savepoint')
  if (!SQL_FUNCTION.test(String(name)) && !isTemplate(first)) return false
  return isTransactionCommand(sqlOf(first))
}

/** The SQL text of a library's query, up to its first value, if it can be read without the library. */
function sqlOf(query: unknown): string {
  if (typeof query === 'string') return query
  if (isTemplate(query)) return query[0] ?? ''
  const { text, sql, queryChunks, value } = Object(query) as Record<string, unknown>
  for (const each of [text, sql]) if (typeof each === 'string') return each
  // drizzle's `sql`
  if (Array.isArray(queryChunks)) return sqlOf(queryChunks.find((chunk) => sqlOf(chunk) !== ''))
  return Array.isArray(value) ? value.join('') : ''
}

const isTemplate = (value: unknown): value is TemplateStringsArray =>
  Array.isArray(value) && Array.isArray((value as { raw?: unknown }).raw)

const isListening = (name: PropertyKey): name is 'then' | 'catch' | 'finally' =>
  name === 'then' || name === 'catch' || name === 'finally'

const isRemoval = (name: PropertyKey): boolean => name === 'off' || name === 'removeListener'

/** Whether the result of the call has nothing to do with the transaction: a runner of its own, or an entity. */
const isUnrelated = (owner: unknown, name: PropertyKey): boolean =>
  name === 'createQueryRunner' ||
  ((name === 'create' || name === 'merge') && has(owner, 'createQueryBuilder'))

const has = (owner: unknown, name: string): boolean =>
  typeof (Object(owner) as Record<string, unknown>)[name] === 'function'

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

/** `false` for a subclass: postgres.js sends its queries when their `then` is called. */
const isNativePromise = (value: unknown): value is Promise<unknown> =>
  types.isPromise(value) && Object.getPrototypeOf(value) === Promise.prototype

/** Values that cannot send anything. A native promise resolves to a result. */
const isData = (value: object): boolean =>
  Array.isArray(value) ||
  ArrayBuffer.isView(value) ||
  isNativePromise(value) ||
  types.isDate(value) ||
  types.isNativeError(value) ||
  types.isRegExp(value) ||
  types.isMap(value) ||
  types.isSet(value) ||
  isClass(value)

/** A plain object without functions. The members of a library's own proxy need not show. */
const isRow = (value: object): boolean =>
  isPlain(value) &&
  !types.isProxy(value) &&
  !Reflect.ownKeys(value).some((key) => typeof Reflect.get(value, key) === 'function')

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

/** Also recognises a class that was compiled to a function, by its name or by the members of its prototype. */
function isClass(value: object): boolean {
  if (typeof value !== 'function') return false
  const prototype = Object.getOwnPropertyDescriptor(value, 'prototype')
  if (prototype === undefined) return false
  const isNamed = /^[A-Z]/.test(value.name)
  return !prototype.writable || isNamed || Reflect.ownKeys(Object(prototype.value)).length > 1
}

const isCallback = (value: unknown): value is Callable =>
  typeof value === 'function' && !isClass(value) && !TARGETS.has(value)

// Users pass guards in a list of expressions or an object of columns, and no deeper.
const UNWRAP_DEPTH = 3

/** Replaces guards with what they guard, alone or in lists and plain objects, before a value reaches the library. */
function unwrap(value: unknown, depth = UNWRAP_DEPTH): unknown {
  if (!isObject(value)) return value
  const target = TARGETS.get(value)
  if (target !== undefined || depth === 0) return target ?? value
  const inner = (each: unknown): unknown => unwrap(each, depth - 1)
  if (Array.isArray(value)) {
    // Libraries recognise the strings of a tagged template by identity.
    if (Object.isFrozen(value)) return value
    const list = value.map(inner)
    return list.some((each, at) => each !== value[at]) ? list : value
  }
  if (!isPlain(value)) return value
  const entries = Object.entries(value)
  const changed = entries.map(([name, each]) => [name, inner(each)] as const)
  return changed.some(([, each], at) => each !== entries[at]?.[1])
    ? Object.fromEntries(changed)
    : value
}
