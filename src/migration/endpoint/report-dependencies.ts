import {
  type Dependency,
  type DependencyFailure,
  dependencyOf,
} from '../../base/decision/dependency.js'
import {
  isMigrationObserved,
  type MigrationUndecided,
} from '../../base/decision/migration-event.js'
import type { EndpointSettings } from './endpoint-options.js'
import type { EndpointResult } from './endpoint-result.js'

/** Reports that the dependencies of a request worked, or which one of them failed. */
export function reportDependencies(result: EndpointResult, settings: EndpointSettings): void {
  if (result.type === 'accepted') {
    for (const dependency of Object.values(dependenciesOf(settings))) dependency.worked(Date.now)
  } else if (result.type === 'undecided') {
    const failure = findFailed(result.reason, result.faults?.[0], dependenciesOf(settings))
    if (failure !== undefined) report(failure, settings)
  }
}

type Dependencies = Record<'core' | 'tokens' | 'limiter' | 'users', Dependency>

const dependenciesOf = ({ core, issuers, limits, loadUser }: EndpointSettings): Dependencies => ({
  core: dependencyOf('core', core),
  tokens: dependencyOf('tokens', issuers),
  limiter: dependencyOf('limiter', limits),
  users: dependencyOf('users', loadUser),
})

/** `fault` is the code of a `CoreError`. Returns `undefined` if no dependency failed. */
function findFailed(
  reason: MigrationUndecided,
  fault: string | undefined,
  { core, tokens, limiter, users }: Dependencies,
): DependencyFailure | undefined {
  switch (reason) {
    case 'tokens_unavailable':
      return { dependency: tokens, message: 'the function tokens of migrationEndpoint failed' }
    case 'limiter_unavailable':
      return { dependency: limiter, message: 'a limiter of migrationEndpoint failed' }
    case 'user_unavailable':
      return { dependency: users, message: 'loadUser of migrationEndpoint failed' }
    case 'core_unavailable':
    case 'outcome_unknown': {
      const message = `the core of migrationEndpoint failed (reason: ${fault ?? 'no reply in time'})`
      return { dependency: core, message }
    }
    case 'body_unfinished':
      // The caller was too slow.
      return undefined
  }
}

function report(
  { dependency, message }: DependencyFailure,
  { onDecision }: EndpointSettings,
): void {
  dependency.failed({ message, isObserved: isMigrationObserved(onDecision), clock: Date.now })
}
