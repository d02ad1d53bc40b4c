import { allow, deny } from '../base/decision/reason.js'
import type { AnyRouteHandler } from './any-route.js'
import { guardHandler } from './guard.js'

/**
 * Refuses with 403 unless the caller holds all of the permissions. Needs a `serviceAuth` before it;
 * without one, `next(error)`.
 *
 * @throws TypeError when there is no name, or one that is no non-empty string.
 */
export function requirePermissions(...names: [string, ...string[]]): AnyRouteHandler {
  if (names.length === 0) throw new TypeError('requirePermissions: must be given at least one name')
  names.forEach((name, index) => {
    if (typeof name === 'string' && name !== '') return
    throw new TypeError(
      `requirePermissions: names[${index}] must be a non-empty string (each name is an argument of its own)`,
    )
  })
  const required = [...names]
  return guardHandler<void>({
    by: 'requirePermissions',
    decide({ admission: { identity } }) {
      const missing = required.find((name) => !identity.permissions.has(name))
      if (missing === undefined) return allow(undefined)
      const { name: caller, keyId } = identity
      return deny('permission_missing', { permission: missing, caller, keyId })
    },
    observers: ({ admission }) => admission.observers,
  })
}
