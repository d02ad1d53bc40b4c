import * as ours from './ours.js'

/** Every app that can be measured, by name. Peers are loaded where they are asked for. */
export const apps = {
  ...ours,
  ...Object.fromEntries(
    [
      'oauth2JwtBearer',
      'expressJwt',
      'awsJwtVerify',
      'fastJwt',
      'fastJwtCached',
      'expressIdempotency',
    ].map((name) => [name, async (settings) => (await import('./peers.js'))[name](settings)]),
  ),
}
