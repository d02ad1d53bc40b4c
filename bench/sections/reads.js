import { measure } from '../measure.js'
import { printTable, ratioHeads, ratioRow } from '../table.js'

const few = [{ kind: 'read', pool: 'few', status: 200 }]
const fresh = [{ kind: 'read', pool: 'fresh', status: 200 }]

/** Reads behind `serviceAuth` and `requirePermissions` against a bare Express app. */
export async function tokens(bench) {
  const [bare, ours, oursFresh] = await measure(
    bench,
    [
      { label: 'bare Express', app: 'bareRead', turns: few },
      { label: 'few tokens', app: 'read', turns: few },
      { label: 'every token new', app: 'read', turns: fresh },
    ],
    bench.timing,
  )
  printTable('Reads: serviceAuth and requirePermissions', ratioHeads('', 'bare'), [
    ratioRow(bare),
    ratioRow(ours, bare, 0.92),
    ratioRow(oursFresh, bare, 0.5),
  ])
}

/** The bare app is no peer, but what none of them can pass. */
const PEERS = [
  { label: 'bare Express', app: 'bareRead' },
  { label: 'express-oauth2-jwt-bearer', app: 'oauth2JwtBearer', few: 1.9, fresh: 1.1 },
  { label: 'express-jwt + jwks-rsa', app: 'expressJwt', few: 3.0, fresh: 1.7 },
  { label: 'aws-jwt-verify', app: 'awsJwtVerify' },
  { label: 'fast-jwt + get-jwks', app: 'fastJwt' },
  { label: 'fast-jwt with its cache', app: 'fastJwtCached', few: 1.1 },
]

/** The same read behind each peer. */
export async function peers(bench) {
  const contenders = (turns) => [
    { label: 'express-service-auth', app: 'read', turns },
    ...PEERS.map(({ label, app }) => ({ label, app, turns })),
  ]
  const all = [...contenders(few), ...contenders(fresh)]
  const measured = await measure(bench, all, bench.timing)
  const half = measured.length / 2
  printPeers('few tokens', measured.slice(0, half), (peer) => peer.few)
  printPeers('every token new', measured.slice(half), (peer) => peer.fresh)
}

function printPeers(title, [ours, ...others], goalOf) {
  const rows = others.map((other, index) => {
    const [label, rate, cpu] = ratioRow(other)
    const [, , , ...oursAgainstIt] = ratioRow(ours, other, goalOf(PEERS[index]))
    return [label, rate, cpu, ...oursAgainstIt]
  })
  const heads = ratioHeads('', 'it')
  heads[3] = 'ours against it'
  printTable(`Reads against peers: ${title}`, heads, [ratioRow(ours), ...rows])
}
