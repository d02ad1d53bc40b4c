import { type BadUser, each, METHOD, NO_LISTS_OF_TEXTS, NO_TEXTS, withMembers } from './bad-user.js'

const ROLE = { role: 'known-role', tenantIds: ['public'] }
const LONG_ROLE = 'r'.repeat(256)
const NO_TENANCY = 'Multitenancy must be enabled before importing users to a different tenant.'

const withRoles = (...userRoles: object[]) => withMembers({ userRoles })

export const BAD_ROLES: readonly BadUser[] = [
  ...each('role', NO_TEXTS, (role) => ({
    user: withRoles({ ...ROLE, role }),
    errors: ['role should be of type string for a user role.'],
    isFault: true,
  })),
  {
    name: 'a role without role',
    user: withRoles({ tenantIds: ['public'] }),
    errors: ['role is required for a user role.'],
    isFault: true,
  },
  ...each('tenantIds of a role', NO_LISTS_OF_TEXTS, (tenantIds) => ({
    user: withRoles({ ...ROLE, tenantIds }),
    errors: ['tenantIds should be of type array of string for a user role.'],
  })),
  {
    name: 'a role without tenants',
    user: withRoles({ role: 'known-role' }),
    errors: ['tenantIds is required for a user role.'],
  },
  {
    name: 'a role that does not exist',
    user: withRoles({ ...ROLE, role: ' stranger ' }),
    errors: ['Role stranger does not exist.'],
  },
  {
    name: 'a role in another case',
    user: withRoles({ ...ROLE, role: 'Known-Role' }),
    errors: ['Role Known-Role does not exist.'],
  },
  {
    name: 'a role with a space that is not trimmed',
    user: withRoles({ ...ROLE, role: '\u00a0known-role' }),
    errors: ['Role \u00a0known-role does not exist.'],
  },
  {
    name: 'a role of 256 characters',
    user: withRoles({ ...ROLE, role: LONG_ROLE }),
    errors: [
      `role ${LONG_ROLE} is too long. Max length is 255.`,
      `Role ${LONG_ROLE} does not exist.`,
    ],
  },
  {
    name: 'two roles with faults',
    user: withRoles({ role: 'stranger' }, { role: 'other', tenantIds: null }),
    errors: [
      'tenantIds is required for a user role.',
      'Role stranger does not exist.',
      'tenantIds should be of type array of string for a user role.',
      'Role other does not exist.',
    ],
  },
  {
    name: 'a role in another tenant without the feature',
    user: withRoles({ ...ROLE, tenantIds: ['known-tenant', 'public'] }),
    errors: [NO_TENANCY],
    features: 'none',
  },
  {
    name: 'a role in the public tenant in another case, without the feature',
    user: withRoles({ ...ROLE, tenantIds: ['PUBLIC'] }),
    errors: [NO_TENANCY],
    features: 'none',
  },
  {
    name: 'a role in an unknown tenant',
    user: withRoles({ ...ROLE, tenantIds: [' Stranger'] }),
    errors: ['Invalid tenantId:  Stranger for a user role.'],
    features: 'all',
  },
  {
    name: 'a role in a tenant of no login method',
    user: withRoles({ ...ROLE, tenantIds: ['Known-Tenant', 'public', 'other-tenant'] }),
    errors: [
      'TenantId known-tenant for a user role does not exist in loginMethods.',
      'TenantId other-tenant for a user role does not exist in loginMethods.',
    ],
    features: 'all',
  },
  {
    name: 'a role in the tenant of a method of an unknown recipe',
    user: {
      userRoles: [{ ...ROLE, tenantIds: ['known-tenant'] }],
      loginMethods: [{ ...METHOD, recipeId: 'webauthn', tenantIds: ['known-tenant'] }],
    },
    errors: [
      'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!',
      'TenantId known-tenant for a user role does not exist in loginMethods.',
    ],
    features: 'all',
  },
  {
    name: 'a role in a tenant while the login methods are missing',
    user: { userRoles: [{ ...ROLE, tenantIds: ['known-tenant'] }] },
    errors: [
      'loginMethods is required.',
      'TenantId known-tenant for a user role does not exist in loginMethods.',
    ],
    features: 'all',
  },
]
