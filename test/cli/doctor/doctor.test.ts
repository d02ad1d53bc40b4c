import { afterAll, describe, expect, it } from 'vitest'
import { createProof, createProofKey } from '../../../src/testing/issuer/bound-token.js'
import {
  type Behaviour,
  flood,
  MEBIBYTE,
  redirectTo,
  refusingUrl,
  respond,
  serve,
  startKeySetServer,
} from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, shapeOfKey, tokenFrom } from '../../support/issuer/signing-keys.js'
import { runHere } from '../kit.js'
import { type Asked, diagnose } from './doctor-kit.js'

const first = makeSigningKey('d-1795328984561')
const second = makeSigningKey('d-1795328984560')
const stationary = makeSigningKey('s-0a1b2c')
/** Half a minute more than an hour: a busy machine takes its time. */
const GOOD = { 'cache-control': 'max-age=3630, must-revalidate' }
const healthy = serve({ keys: [first.jwk, second.jwk, stationary.jwk] }, GOOD)
const SECRET_QUERY = 'key=hunter2hunter2hunter2'

const server = await startKeySetServer(healthy)
afterAll(() => server.close())

interface Examined extends Asked {
  readonly policy?: object
  readonly jwksUri?: string
}

async function examine(behaviour: Behaviour, examined: Examined = {}) {
  server.behave(behaviour)
  const jwksUri = examined.jwksUri ?? `${server.url}?${SECRET_QUERY}`
  return await diagnose({ ...POLICY, jwksUri, ...examined.policy }, examined)
}

const codesOf = (findings: unknown): string[] =>
  (findings as { code: string }[]).map(({ code }) => code)

describe('a healthy key set', () => {
  it('is shown with each key, and ends with 0, with --strict too', async () => {
    const { exitCode, stdout, stderr, object } = await examine(healthy, { options: ['--strict'] })
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(object).toEqual({
      command: 'doctor',
      ok: true,
      keySet: {
        jwksUri: server.url,
        status: 200,
        maxAgeSeconds: 3630,
        keys: [
          { kid: first.kid, kind: 'dynamic', bits: 2048, usable: true },
          { kid: second.kid, kind: 'dynamic', bits: 2048, usable: true },
          {
            kid: 's-0a1b2c',
            kind: 'static',
            bits: 2048,
            usable: false,
            reason: 'static_key_refused',
          },
        ],
      },
      warnings: [],
      faults: [],
    })
    expect(stdout).toBe(
      [
        `Key set  ${server.url}`,
        'Status   200',
        'Cache    fresh for 60 min',
        'Clock    no Date header to compare with',
        '',
        'Keys',
        `  ${first.kid}  dynamic  2048 bits  usable`,
        `  ${second.kid}  dynamic  2048 bits  usable`,
        '  s-0a1b2c         static   2048 bits  not usable: static_key_refused',
        '',
      ].join('\n'),
    )
  })

  it('is asked as a receiver asks, once', async () => {
    const asked = server.requests.length
    await examine(healthy)
    // Once for people and once as JSON.
    expect(server.requests.length).toBe(asked + 2)
    expect(server.requests.at(-1)?.headers.get('accept')).toContain('application/jwk-set+json')
  })
})

describe('what will hurt', () => {
  const two = { keys: [first.jwk, second.jwk] }
  const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString()
  it.each<[string, () => Behaviour]>([
    ['no_max_age', () => serve(two)],
    ['max_age_short', () => serve(two, { 'cache-control': 'max-age=1' })],
    ['max_age_short', () => serve(two, { ...GOOD, age: '3620' })],
    ['key_unusable', () => serve({ keys: [...two.keys, shapeOfKey('d-1', 1024)] }, GOOD)],
    ['clock_behind', () => serve(two, { ...GOOD, date: inSeconds(-60) })],
  ])('is a warning (%s), which counts with --strict', async (code, behaviour) => {
    const { exitCode, object, stdout } = await examine(behaviour())
    expect({ exitCode, codes: codesOf(object['warnings']) }).toEqual({ exitCode: 0, codes: [code] })
    expect(stdout).toMatch(new RegExp(`^warning  ${code}  \\S`, 'm'))
    const strict = await examine(behaviour(), { options: ['--strict'] })
    expect(strict.exitCode).toBe(1)
    expect(strict.object).toMatchObject({ ok: false })
  })

  it.each<[string, () => Behaviour, Examined?]>([
    ['status', () => respond('500 Internal Server Error', '')],
    ['status', () => redirectTo(`${server.url}/x?${SECRET_QUERY}`)],
    ['status', () => redirectTo(`https://u:hunter2hunter2@elsewhere.example/x`)],
    ['malformed', () => respond('200 OK', '{')],
    ['too_large', () => flood(two, 2 * MEBIBYTE).behaviour],
    ['too_many_keys', () => serve({ keys: Array(33).fill(first.jwk) })],
    ['no_usable_key', () => serve({ keys: [stationary.jwk] }, GOOD)],
    [
      'no_usable_key',
      () => serve(two, GOOD),
      { policy: { denylist: { keys: [first.kid, second.kid] } } },
    ],
    [
      'key_private',
      () => serve({ keys: [...two.keys, { ...shapeOfKey('d-2', 2048), d: 'AQAB' }] }, GOOD),
    ],
    ['clock_ahead', () => serve(two, { ...GOOD, date: inSeconds(60) })],
  ])('or a fault (%s), which ends with 1', async (code, behaviour, examined = {}) => {
    const { exitCode, object, stdout, stderr } = await examine(behaviour(), examined)
    expect(exitCode).toBe(1)
    expect(codesOf(object['faults'])).toEqual([code])
    expect(stdout).toMatch(new RegExp(`^fault +${code}  \\S`, 'm'))
    expect(stderr).toBe('')
  })

  it('says of a redirect where it leads', async () => {
    const { stdout } = await examine(redirectTo('https://elsewhere.example/x?key=hunter2'))
    expect(stdout).toContain('and https://elsewhere.example/x as location: receivers follow no')
  })

  it('says at a 404 where a core and the backend SDK publish a key set', async () => {
    const { stdout } = await examine(respond('404 Not Found', ''))
    expect(stdout).toContain('a core itself publishes /.well-known/jwks.json')
    expect(stdout).toContain('the backend SDK /auth/jwt/jwks.json')
  })

  it.each([
    ['within the tolerance', () => ({ date: inSeconds(-4) }), expect.any(Number)],
    ['that a cache gave', () => ({ date: inSeconds(-60), age: '60' }), 0],
    ['that nobody can read', () => ({ date: 'soon' }), undefined],
  ])('is not a clock %s', async (_what, headers, clockOffsetSeconds) => {
    const { object } = await examine(serve(two, { ...GOOD, ...headers() }))
    expect(object.keySet['clockOffsetSeconds']).toEqual(clockOffsetSeconds)
    expect(object['warnings']).toEqual([])
  })

  it('is said of every key that is left out', async () => {
    const broken = [
      null,
      { ...first.jwk, kid: 'a\u001b[2J\n' },
      { ...first.jwk, kid: 'twice' },
      { ...second.jwk, kid: 'twice' },
    ]
    const { exitCode, stdout, object } = await examine(
      serve({ keys: [first.jwk, ...broken, second.jwk] }, GOOD),
    )
    expect(exitCode).toBe(0)
    expect(object.keySet['keys']).toMatchObject([
      { kid: first.kid, usable: true },
      { kid: null, usable: false, reason: 'malformed' },
      { kid: 'a\u001b[2J\n', bits: 2048, usable: false, reason: 'key_id_invalid' },
      { kid: 'twice', usable: false, reason: 'key_id_repeated' },
      { kid: 'twice', usable: false, reason: 'key_id_repeated' },
      { kid: second.kid, usable: true },
    ])
    expect(codesOf(object['warnings'])).toEqual(Array(4).fill('key_unusable'))
    expect(stdout).toContain('  a\\u001b[2J\\u000a')
    expect(stdout).not.toContain('\u001b')
  })
})

describe('a key set unreachable', () => {
  it('ends with 3, and the token is undecided', async () => {
    const stdin = tokenFrom(first)
    const options = ['--token-stdin']
    const jwksUri = `${await refusingUrl()}?${SECRET_QUERY}`
    const { exitCode, stderr, object } = await examine(healthy, { jwksUri, options, stdin })
    expect(exitCode).toBe(3)
    expect(stderr).toMatch(
      /^service-auth: the key set at .* is unreachable \(network, ECONNREFUSED\)\n$/,
    )
    expect(object).toMatchObject({
      ok: false,
      keySet: { status: null, keys: [] },
      error: { code: 'key_set_unavailable' },
      verdict: { outcome: 'undecided', reason: 'key_set_unavailable', status: 503 },
    })
  })

  it('is waited for no longer than a receiver waits', async () => {
    const { exitCode, stderr } = await examine(() => {})
    expect(exitCode).toBe(3)
    expect(stderr).toContain('is unreachable (timeout)')
  })
})

describe('a token', () => {
  it.each(['', 'Bearer ', 'bearer '])('is judged with %j before it', async (scheme) => {
    const token = tokenFrom(first)
    const options = ['--token-stdin']
    const accepted = await examine(healthy, { options, stdin: `${scheme}${token}\n` })
    expect(accepted).toMatchObject({ exitCode: 0, object: { verdict: { outcome: 'accepted' } } })
    expect(accepted.stdout).toContain('Token accepted\n  not checked: a live denylist')
    expect(accepted.stdout).toMatch(/^ {2}sub +"billing"$/m)
  })

  it('that is refused ends with 1, and is not shown', async () => {
    const token = tokenFrom(first, { claims: { aud: 'bil\u202eling' } })
    const options = ['--token-stdin']
    const refused = await examine(healthy, { options, stdin: token })
    expect(refused.exitCode).toBe(1)
    expect(refused.object).toMatchObject({
      ok: false,
      verdict: { outcome: 'refused', reason: 'claim_invalid', status: 401 },
    })
    expect(refused.stdout).toContain('Token refused: claim_invalid (aud), the caller gets 401\n')
    expect(refused.stdout).toMatch(/^ {2}claims +FAILED /m)
    expect(refused.stdout).toMatch(/^ {2}aud +"bil\\u202eling" +the policy requires "orders"$/m)
    for (const part of token.split('.')) {
      expect(refused.stdout + JSON.stringify(refused.object)).not.toContain(part.slice(0, 16))
    }
  })

  it('that is missing ends with 2 before anything is asked', async () => {
    const asked = server.requests.length
    const refused = await examine(healthy, { options: ['--token-stdin'] })
    expect(refused).toMatchObject({ exitCode: 2, object: { error: { code: 'input' } } })
    expect(server.requests.length).toBe(asked)
  })
})

describe('a token that is bound to a key', () => {
  const policy = { senderConstraint: { dpop: { baseUrls: ['https://orders.test'] } } }
  const key = createProofKey()
  const token = () => tokenFrom(first, { claims: { cnf: { jkt: key.thumbprint } } })
  const request = ['--method', 'POST', '--url', '/orders?page=2']
  const options = ['--token-stdin', '--proof-stdin', ...request]
  const proofFor = (bound: string, url = 'https://orders.test/orders') =>
    createProof(key, { token: bound, method: 'POST', url, now: Date.now() / 1000 })

  it('is shown with what it is bound to, which is not checked without a proof', async () => {
    const stdin = token()
    const judged = await examine(healthy, { policy, options: ['--token-stdin'], stdin })
    expect(judged).toMatchObject({ exitCode: 0, object: { verdict: { outcome: 'accepted' } } })
    expect(judged.stdout).toContain('  not checked: its binding (cnf), which a request must show\n')
    expect(judged.stdout).toMatch(/^ {2}cnf +\{"jkt":"[\w-]{43}"\}/m)
    const older = await examine(healthy, { options: ['--token-stdin'], stdin })
    expect(older.object).toMatchObject({ verdict: { reason: 'confirmation_unsupported' } })
  })

  it.each(['', 'DPoP '])('is judged with its proof, and with %j before it', async (scheme) => {
    const bound = token()
    const stdin = `${scheme}${bound}\n${proofFor(bound)}\n`
    const accepted = await examine(healthy, { policy, options, stdin })
    expect(accepted).toMatchObject({ exitCode: 0, object: { verdict: { outcome: 'accepted' } } })
    expect(accepted.stdout).toMatch(/^ {2}proof +passed /m)
    expect(accepted.stdout).not.toContain('its binding')
  })

  it('is refused for the member of its proof that is wrong', async () => {
    const bound = token()
    const elsewhere = proofFor(bound, 'https://orders.test/others')
    const refused = await examine(healthy, { policy, options, stdin: `${bound}\n${elsewhere}` })
    expect(refused).toMatchObject({
      exitCode: 1,
      object: { verdict: { outcome: 'refused', reason: 'proof_invalid', member: 'htu' } },
    })
    expect(refused.stdout).toContain('Token refused: proof_invalid (htu), the caller gets 401\n')
    expect(refused.stdout).toMatch(/^ {2}proof +FAILED /m)
    expect(refused.stdout).not.toContain(elsewhere.slice(0, 32))
    const unbound = tokenFrom(first)
    const stdin = `${unbound}\n${proofFor(unbound)}`
    const judged = await examine(healthy, { policy, options, stdin })
    expect(judged.object).toMatchObject({ verdict: { reason: 'confirmation_missing' } })
  })

  it.each([
    [['--proof-stdin'], ''],
    [['--method', 'GET'], ''],
    [['--token-stdin', '--url', '/'], 'x'],
    [['--token-stdin', '--proof-stdin', '--method', 'GET'], 'x\ny'],
    [['--token-stdin', '--proof-stdin', '--method', 'GET', '--url', 'orders'], 'x\ny'],
    [['--token-stdin', '--proof-stdin', '--method', 'GET', '--url', '/'], 'x'],
    [['--token-stdin', '--proof-stdin', '--method', 'GET', '--url', '/'], 'x\ny\nz'],
  ])('ends with 2 for %j', async (wrong, stdin) => {
    const { exitCode } = await examine(healthy, { policy, options: wrong, stdin })
    expect(exitCode).toBe(2)
  })
})

describe('a wrong policy', () => {
  it('ends with 2, in its own words', async () => {
    const { exitCode, stderr } = await examine(healthy, { policy: { audience: 5 } })
    expect(exitCode).toBe(2)
    expect(stderr).toBe('service-auth: serviceAuth policy: audience must be a non-empty string\n')
  })

  it('that is missing ends with 2', async () => {
    for (const argv of [['doctor'], ['doctor', '--policy', '/nonexistent/policy.json']]) {
      expect(await runHere(argv)).toMatchObject({ exitCode: 2, stdout: '' })
    }
  })
})
