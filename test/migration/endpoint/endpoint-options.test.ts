import { beforeAll, expect, it } from 'vitest'
import type { MigrationEndpointOptions } from '../../../src/migration/endpoint/endpoint-options.js'
import { migrationEndpoint } from '../../../src/migration/endpoint/migration-endpoint.js'
import { endpointOptions, ISSUER, TOKEN } from './kit.js'

let good: MigrationEndpointOptions
beforeAll(() => {
  good = endpointOptions('http://127.0.0.1:6700')
})

/** What is said of these options, without the subject. */
function faultOf(options: unknown): string {
  try {
    migrationEndpoint(options as MigrationEndpointOptions)
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as TypeError).message.replace('migrationEndpoint options: ', '')
  }
  return 'none'
}

const withIssuer = (issuer: object) => ({
  ...good,
  issuers: { legacy: { ...good.issuers[ISSUER], ...issuer } },
})
const connection = (more: object) => ({
  provider: 'p',
  connection: 'c',
  as: { recipeId: 'emailpassword' },
  ...more,
})

it('the least that is needed is enough', () => {
  expect(faultOf(good)).toBe('none')
  expect(faultOf({ ...good, acceptWarnings: undefined, onDecision: undefined })).toBe('none')
  const most = {
    acceptWarnings: ['no_primary'],
    organizationField: 'auth0OrganizationId',
    maxBodyBytes: 1_048_576,
    timeoutMs: 60_000,
  }
  expect(faultOf({ ...good, ...most })).toBe('none')
})

it('every missing option is named at once', () => {
  const fault = faultOf({})
  for (const name of ['core', 'issuers', 'loadUser', 'limits']) {
    expect(fault).toMatch(new RegExp(`(^|; )${name} must be `))
  }
})

it.each<[string, () => unknown]>([
  ['the options must be an object', () => undefined],
  ['more is not an option', () => ({ ...good, more: 1 })],
  ['core must be a core client', () => ({ ...good, core: {} })],
  [
    'limits.user must be a limiter with consume',
    () => ({ ...good, limits: { ...good.limits, user: {} } }),
  ],
  ['acceptWarnings[0] must be a warning', () => ({ ...good, acceptWarnings: ['all'] })],
  [
    'organizationField must not be the name of another member of the body',
    () => ({ ...good, organizationField: 'identities' }),
  ],
  ['timeoutMs must be an integer from 1', () => ({ ...good, timeoutMs: 60_001 })],
  ['issuers must have at least one issuer', () => ({ ...good, issuers: {} })],
  ...[[], [TOKEN, 'x'.repeat(31)], TOKEN].map((tokens): [string, () => unknown] => [
    'issuers.legacy.tokens must be a list of tokens of 32 or more visible ASCII characters',
    () => withIssuer({ tokens }),
  ]),
  [
    'issuers.legacy.connections must not list a connection twice',
    () => withIssuer({ connections: [connection({}), connection({})] }),
  ],
  [
    'issuers.legacy.connections[0].as.recipeId must be',
    () => withIssuer({ connections: [connection({ as: { recipeId: 'webauthn' } })] }),
  ],
  [
    'issuers.legacy.connections[0].as.thirdPartyId is required',
    () => withIssuer({ connections: [connection({ as: { recipeId: 'thirdparty' } })] }),
  ],
  [
    'issuers.legacy.connections[0].as.thirdPartyId is required',
    () =>
      withIssuer({
        connections: [connection({ as: { recipeId: 'passwordless', thirdPartyId: 'google' } })],
      }),
  ],
  [
    'issuers.legacy must have organizations or withoutOrganization',
    () => withIssuer({ organizations: undefined, withoutOrganization: undefined }),
  ],
  [
    'issuers.legacy.withoutOrganization[0] must be',
    () => withIssuer({ withoutOrganization: [' '] }),
  ],
])('%s', (fault, options) => {
  expect(faultOf(options())).toContain(fault)
})
