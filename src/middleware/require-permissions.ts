import { allow, type Decision, deny } from '../base/decision/reason.js'
import { permissionsOf, type ServiceIdentity } from '../verification/policy/identity.js'
import type { AnyRouteHandler } from './any-route.js'
import { guardHandler } from './guard.js'

/**
 * Refuses with 403 unless the caller holds all of the permissions. Needs a `serviceAuth` before it;
 * without one, `next(error)`.
 *
 * @throws TypeError without names, or with a name that is not a non-empty string.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { requirePermissions, serviceAuth } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const app = express().use(serviceAuth((await createTestIssuer()).policy()))
 * app.get('/orders', requirePermissions('orders:read', 'orders:list'), (_req, res) => {
 *   res.json([])
 * })
 * ```
 */
export const requirePermissions = (...names: [string, ...string[]]): AnyRouteHandler =>
  permissionGuard('requirePermissions', names, requireEach)

/**
 * Refuses with 403 unless the caller holds one of the permissions. Needs a `serviceAuth` before it;
 * without one, `next(error)`.
 *
 * @throws TypeError without names, or with a name that is not a non-empty string.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { requireAnyPermission, serviceAuth } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const app = express().use(serviceAuth((await createTestIssuer()).policy()))
 * app.get('/orders', requireAnyPermission('orders:read', 'orders:admin'), (_req, res) => {
 *   res.json([])
 * })
 * ```
 */
export const requireAnyPermission = (...names: [string, ...string[]]): AnyRouteHandler =>
  permissionGuard('requireAnyPermission', names, requireOne)

type Requirement = (required: readonly string[], identity: ServiceIdentity) => Decision<void>

function permissionGuard(
  by: 'requirePermissions' | 'requireAnyPermission',
  names: readonly string[],
  decide: Requirement,
): AnyRouteHandler {
  if (names.length === 0) throw new TypeError(`${by}: must be given at least one name`)
  names.forEach((name, index) => {
    if (typeof name === 'string' && name !== '') return
    throw new TypeError(
      `${by}: names[${index}] must be a non-empty string: pass each name as a separate argument, as in ${by}('orders:read')`,
    )
  })
  const required = [...names]
  return guardHandler<void>({
    by,
    decide: ({ admission: { identity } }) => decide(required, identity),
    observers: ({ admission }) => admission.observers,
    dependencies: () => [],
  })
}

/** Accepts a caller that holds all of the permissions. */
export const requireEach: Requirement = (required, identity) => {
  const missing = required.find((name) => !permissionsOf(identity).includes(name))
  return missing === undefined ? allow(undefined) : permissionMissing(missing, identity)
}

const requireOne: Requirement = (required, identity) =>
  required.some((name) => permissionsOf(identity).includes(name))
    ? allow(undefined)
    : permissionMissing(required.join(' '), identity)

const permissionMissing = (permission: string, { name: caller, keyId }: ServiceIdentity) =>
  deny('permission_missing', { permission, caller, keyId })
