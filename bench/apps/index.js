import * as ours from './ours.js'

const PEERS = [
  'oauth2JwtBearer',
  'expressJwt',
  'awsJwtVerify',
  'fastJwt',
  'fastJwtCached',
  'expressIdempotency',
]
const ON_POSTGRES = ['bare', 'byHand', 'replayByHand', 'coupled', 'leased', 'usedToken']

/** Every app that can be measured, by name. Peers and databases are loaded where they are asked for. */
export const apps = {
  ...ours,
  ...lazily(PEERS, () => import('./peers.js')),
  ...lazily(ON_POSTGRES, () => import('./postgres.js')),
}

function lazily(names, load) {
  const entries = names.map((name) => [name, async (settings) => (await load())[name](settings)])
  return Object.fromEntries(entries)
}
