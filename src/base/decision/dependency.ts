import { ServiceAuthError, type Unavailable } from './service-auth-error.js'

type DependencyKind = Unavailable['what'] | 'core' | 'tokens' | 'limiter' | 'users'

/**
 * A key set, a denylist, a store, or what a `migrationEndpoint` depends on. Its failure is reported by
 * `process.emitWarning` if nothing else reports it: once.
 */
export interface Dependency {
  readonly kind: DependencyKind
  /** Call it if a request was not decided because of the dependency. Never throws. */
  failed(report: FailureReport): void
}

interface FailureReport {
  /** Contains no secrets. */
  readonly message: string
  /** Whether observers or subscribers learn of the failure, so that no warning is needed. */
  readonly isObserved: boolean
}

/** A dependency that failed, and how, without secrets. */
export interface DependencyFailure {
  readonly dependency: Dependency
  readonly message: string
}

/** A denylist threw, or a store resolved to a value of a wrong form: the request gets `next(error)`. */
export class DependencyError extends ServiceAuthError implements DependencyFailure {
  // Not enumerable, because an app may log the error with all its properties.
  readonly #dependency: Dependency

  constructor(dependency: Dependency, message: string, options?: ErrorOptions) {
    super('internal', message, options)
    this.#dependency = dependency
  }

  get dependency(): Dependency {
    return this.#dependency
  }
}

const WARNINGS: Record<DependencyKind, { readonly code: string; readonly remedy: string }> = {
  key_set: {
    code: 'SERVICE_AUTH_KEY_SET_UNAVAILABLE',
    remedy:
      'Requests with a token get a 503 until it can be fetched. Check the address in the policy, and that this process can reach it',
  },
  denylist: {
    code: 'SERVICE_AUTH_DENYLIST_UNAVAILABLE',
    remedy:
      'Requests get an error until it can be read. Check that its server (Redis) runs and that this process can reach it, and await ready() before you listen',
  },
  store: {
    code: 'SERVICE_AUTH_STORE_UNAVAILABLE',
    remedy:
      'Requests that need it get an error until it works. Check that its server (Redis, Postgres) runs and that this process can reach it; check() of the store names other faults',
  },
  core: {
    code: 'SERVICE_AUTH_CORE_UNAVAILABLE',
    remedy:
      'Users are not imported until it works; a retry finds out what happened. Check its address and API key, and that this process can reach it',
  },
  tokens: {
    code: 'SERVICE_AUTH_TOKENS_UNAVAILABLE',
    remedy:
      'Requests get a 503 until it works. It must return a list of tokens of 32 or more visible ASCII characters each, within timeoutMs',
  },
  limiter: {
    code: 'SERVICE_AUTH_LIMITER_UNAVAILABLE',
    remedy:
      'Requests get a 503 until it works. Check that its server runs and that this process can reach it; at the limit, consume must reject with a number msBeforeNext',
  },
  users: {
    code: 'SERVICE_AUTH_USERS_UNAVAILABLE',
    remedy:
      'Users are not imported until it works. It must resolve within timeoutMs, to undefined for a user that it does not know',
  },
}

const dependencies = new WeakMap<object, Map<DependencyKind, Dependency>>()

/** The dependency of this object. Middlewares with the same object share its warnings. */
export function dependencyOf(kind: DependencyKind, object: object): Dependency {
  const ofObject = dependencies.get(object) ?? new Map<DependencyKind, Dependency>()
  dependencies.set(object, ofObject)
  const dependency = ofObject.get(kind) ?? createDependency(kind)
  ofObject.set(kind, dependency)
  return dependency
}

function createDependency(kind: DependencyKind): Dependency {
  let hasWarned = false

  return {
    kind,
    failed({ message, isObserved }) {
      if (isObserved || hasWarned) return
      hasWarned = true
      const { code, remedy } = WARNINGS[kind]
      const text = `${message}. ${remedy}. To log every failure, call logDecisions(console).`
      process.emitWarning(`express-service-auth: ${text}`, { type: 'ServiceAuthWarning', code })
    },
  }
}
