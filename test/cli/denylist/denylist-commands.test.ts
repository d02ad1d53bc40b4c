import { afterAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { RedisDenylist } from '../../../src/stores/redis/denylist/redis-denylist.js'
import { openDenylist } from '../../stores/redis/denylist/denylist-kit.js'
import { refusingUrl, serve, startKeySetServer } from '../../support/issuer/key-set-server.js'
import { makeSigningKey, POLICY, tokenFrom } from '../../support/issuer/signing-keys.js'
import { startTcpProxy } from '../../support/network/tcp-proxy.js'
import { startRedis } from '../../support/redis/redis.js'
import { until } from '../../support/until.js'
import { expectFailure, type Ran, runHere, temporaryFile } from '../kit.js'

const key = makeSigningKey('d-1')
const stranger = makeSigningKey('d-1')
const WHY = ['--for', '2h', '--reason', 'its key leaked', '--by', 'ops']

const redis = await startRedis()
const keySet = await startKeySetServer(serve({ keys: [key.jwk] }))
let policy: string

beforeEach(async () => {
  await redis.command('FLUSHALL')
  policy = await policyAt(keySet.url)
})
afterAll(() => Promise.all([redis.stop(), keySet.close()]))

const policyAt = (jwksUri: string): Promise<string> =>
  temporaryFile(JSON.stringify({ ...POLICY, jwksUri }), 0o644)

const service = (argv: readonly string[], { stdin = '', url = redis.url } = {}) =>
  runHere(argv, { stdin, env: { REDIS_URL: url } })

const change: typeof service = (argv, options) => service([...argv, '--policy', policy], options)

async function receiver(name: string): Promise<RedisDenylist> {
  const denylist = openDenylist(redis, { name })
  await denylist.ready()
  await until(`${name} is listed`, async () =>
    (await denylist.receivers()).some((other) => other.name === name),
  )
  return denylist
}

const isUnchanged = async () =>
  Number(await redis.command('EXISTS', 'esa:{denylist}:version')) === 0

const masked = (text: string): string => text.replaceAll(/\d+/g, 'N')

describe('deny', () => {
  it('shows the entry and that all receivers apply it', async () => {
    const one = await receiver('one')
    await receiver('two')
    const ran = await change(['deny', 'caller', 'billing', ...WHY])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(masked(ran.stdout)).toBe(
      [
        'Denied',
        '  caller  billing',
        '  issuer  https://core.example',
        '  until   N-N-NTN:N:NZ',
        '  reason  its key leaked',
        '  by      ops',
        '',
        'N of N receivers applied the change within Nms.',
        '',
      ].join('\n'),
    )
    expect(one.lists(POLICY.issuer)?.callers).toEqual(new Set(['billing']))
  })

  it('tells the same as JSON', async () => {
    await receiver('one')
    const ran = await change(['deny', 'key', 'd-1', '--json', '--for=forever', '--reason=leaked'])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ran.json()).toMatchObject({
      command: 'deny',
      ok: true,
      entry: { issuer: POLICY.issuer, kind: 'key', value: 'd-1', reason: 'leaked', until: null },
      version: expect.any(Number),
      receivers: { applied: 1, of: 1, missing: [], tookMs: expect.any(Number) },
    })
  })

  it('ends with 1 without a receiver, and the entry stands', async () => {
    const ran = await change(['deny', 'caller', 'billing', ...WHY, '--wait', '0s'])
    expect(ran).toMatchObject({ exitCode: 1, stderr: '' })
    expect(ran.stdout).toContain('no receiver has reported yet')
    expect(await openDenylist(redis).entries()).toHaveLength(1)
  })

  it.each(['http://core.internal:3567', 'https://tenant.auth0.com/', 'https://a?b#c', 'core'])(
    'takes the issuer %s as it is',
    async (issuer) => {
      const argv = ['deny', 'token', 'j', '--issuer', issuer, '--wait=0s', '--json', ...WHY]
      expect((await service(argv)).json()).toMatchObject({ entry: { issuer } })
    },
  )

  it('names the receiver that is cut off', async () => {
    await receiver('one')
    const proxy = await startTcpProxy(redis)
    onTestFinished(() => proxy.close())
    const cut = openDenylist(proxy, { name: 'cut off' })
    await cut.ready()
    await until('both are listed', async () => (await cut.receivers()).length === 2)
    await proxy.fail('refused')
    const ran = await change(['deny', 'caller', 'billing', ...WHY, '--wait', '2s'])
    expect(ran.exitCode).toBe(1)
    expect(ran.stdout).toMatch(/\n1 of 2 receivers applied the change within .*:\n {2}cut off\n$/)
  })

  it('takes the jti of a token that has expired', async () => {
    await receiver('one')
    const token = tokenFrom(key, { now: Date.now() - 86_400_000, claims: { jti: 'j-1' } })
    const ran = await change(['deny', 'token', '--token-stdin', '--json', ...WHY], {
      stdin: `Bearer ${token}\n`,
    })
    expect(ran.exitCode).toBe(0)
    expect(ran.json()).toMatchObject({ entry: { kind: 'token', value: 'j-1' } })
  })

  it.each([
    ['1767225600.25', 1_767_225_600.25],
    ['2026-01-01T00:00Z', 1_767_225_600],
    ['2025-12-31T22:30:00-01:30', 1_767_225_600],
  ])('takes %s as cut-off', async (text, second) => {
    const ran = await change(['deny', 'issued-before', text, '--json', '--wait=0s', ...WHY])
    expect(ran.json()).toMatchObject({ entry: { value: second } })
  })

  it.each([
    [[], 5],
    [['--tolerance', '1500ms'], 2],
  ])('takes now as the second after that of Redis, and a tolerance %o', async (options, more) => {
    const second = Math.floor(Date.now() / 1000)
    const argv = ['deny', 'issued-before', 'now', ...options, '--json', '--wait=0s', ...WHY]
    const { value } = (await change(argv)).json()['entry'] as { value: number }
    expect(value).toBeGreaterThanOrEqual(second + 1 + more)
    expect(value).toBeLessThanOrEqual(second + 3 + more)
  })

  it('does so with --unlisted for what policy and key set lack', async () => {
    policy = await policyAt(await refusingUrl())
    for (const kind of ['caller', 'key']) {
      const ran = await change(['deny', kind, 'gone', '--unlisted', '--wait=0s', ...WHY])
      expect(ran).toMatchObject({ exitCode: 1, stderr: '' })
    }
  })
})

type Refused = [string, string[], RegExp]
const LONG = 'x'.repeat(257)

const ahead = Math.floor(Date.now() / 1000) + 600

describe('bad input changes nothing', () => {
  it.each<Refused>([
    ['another kind', ['deny', 'route', 'x', ...WHY], /the first argument must be/],
    ['a kind beside --file', ['deny', 'caller', '--file', 'f'], /takes the place of the kind/],
    ['no value', ['deny', 'caller', ...WHY], /caller needs a value/],
    ['an unknown caller', ['deny', 'caller', 'x', ...WHY], /not approve a caller of this name/],
    ['an unknown key', ['deny', 'key', 'd-9', ...WHY], /no key with this id/],
    ['no end', ['deny', 'caller', 'billing', '--reason', 'x'], /--for is missing/],
    ['an end that is now', ['deny', 'caller', 'billing', '--for=0s', '--reason=x'], /--for must/],
    ['no reason', ['deny', 'caller', 'billing', '--for=1h'], /--reason is missing/],
    [
      'a long value',
      ['deny', 'token', LONG, ...WHY],
      /value must be a well-formed text of 1 to 256/,
    ],
    ...['2026-02-29T00:00:00Z', '2026-01-01T00:00:00', '1767225600000'].map(
      (text): Refused => [
        `the cut-off ${text}`,
        ['deny', 'issued-before', text, ...WHY],
        /issued-before expects now, seconds since the epoch, or a time with a zone/,
      ],
    ),
    [
      'a tolerance of a time',
      ['deny', 'issued-before', '17', '--tolerance=1s', ...WHY],
      /only for/,
    ],
    ['a cut-off ahead', ['deny', 'issued-before', String(ahead), ...WHY], /more than 60 s ahead/],
    [
      'a large tolerance',
      ['deny', 'issued-before', 'now', '--tolerance=61s', ...WHY],
      /must be from/,
    ],
    [
      'a tolerance of a caller',
      ['deny', 'caller', 'billing', '--tolerance=1s', ...WHY],
      /only for/,
    ],
    ['a token twice', ['deny', 'token', 'j', '--token-stdin', ...WHY], /takes the place of VALUE/],
    ['a caller on stdin', ['deny', 'caller', '--token-stdin', ...WHY], /--token-stdin is only for/],
    ['unlisted tokens', ['deny', 'token', 'j', '--unlisted', ...WHY], /--unlisted is only for/],
    ['a cut-off to allow', ['allow', 'issued-before', 'now', '--reason=x'], /not accept a value/],
    ['allow without reason', ['allow', 'caller', 'x'], /--reason is missing/],
    ['allow with a long reason', ['allow', 'caller', 'x', `--reason=${LONG}`], /--reason must be/],
    [
      'a long author',
      ['deny', 'caller', 'billing', ...WHY.slice(0, 4), `--by=${LONG}`],
      /--by must/,
    ],
  ])('%s', async (_what, argv, message) => {
    expectFailure(await change([...argv, '--wait=0s']), 2, message)
    expect(await isUnchanged()).toBe(true)
  })

  it.each<[string, string, RegExp]>([
    ['none', 'nonsense', /does not contain a service token/],
    ['signed by another', tokenFrom(stranger), /not signed by the issuer/],
    ['of another issuer', tokenFrom(key, { claims: { jti: 'j', iss: 'x' } }), /another issuer/],
    ['without a jti', tokenFrom(key), /has no jti .*issued-before/],
  ])('a token that is %s', async (_what, stdin, message) => {
    const ran = await change(['deny', 'token', '--token-stdin', ...WHY], { stdin })
    expectFailure(ran, 2, message)
    expect(ran.stderr).not.toContain(stdin)
    expect(await isUnchanged()).toBe(true)
  })

  it.each([
    ['not JSON', '{', 'the --policy file is not JSON'],
    ['no object', '7', 'serviceAuth policy: the options must be an object'],
    ['a list', JSON.stringify([POLICY, POLICY]), 'only doctor reads a list'],
    ['unknown in part', JSON.stringify({ ...POLICY, isuer: 1 }), 'isuer is not an option'],
  ])('a policy that is %s', async (_what, text, message) => {
    policy = await temporaryFile(text)
    const ran = await change(['deny', 'token', 'j', ...WHY, '--json'])
    expect(ran).toMatchObject({ exitCode: 2 })
    expect(ran.json()).toMatchObject({ error: { code: 'policy' } })
    expect(ran.stderr).toContain(message)
  })

  it('no issuer, or two', async () => {
    const both = ['--issuer', 'https://a', '--policy', policy]
    for (const named of [[], both]) {
      const ran = await service(['allow', 'caller', 'x', '--reason=x', ...named])
      expectFailure(ran, 2, 'use either --issuer URL or --policy FILE')
    }
  })

  it('a key set unreachable', async () => {
    policy = await policyAt(await refusingUrl())
    expectFailure(
      await change(['deny', 'key', 'd-1', '--reason=x', '--for=5x']),
      2,
      '--for must be',
    )
    expectFailure(await change(['deny', 'key', 'd-1', ...WHY]), 3, /nothing changed\. --unlisted/)
  })

  it('Redis unreachable', async () => {
    const at = { url: 'redis://127.0.0.1:1' }
    const wrong = await change(['deny', 'caller', LONG, '--unlisted', ...WHY], at)
    expectFailure(wrong, 2, 'value must be')
    expectFailure(await change(['deny', 'caller', 'billing', ...WHY], at), 3, 'ECONNREFUSED')
  })
})

it('a reply that is lost for good is not known to be written', async () => {
  const proxy = await startTcpProxy(redis)
  onTestFinished(() => proxy.close())
  proxy.loseReplies('written')
  const ran = await change(['deny', 'caller', 'billing', ...WHY], {
    url: `redis://127.0.0.1:${proxy.port}`,
  })
  expectFailure(ran, 3, 'not known whether it was written')
})

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s ends the wait, and what is written is told',
  async (signal) => {
    const before = process.listenerCount(signal)
    const ending = change(['deny', 'caller', 'billing', ...WHY, '--wait', '5m'])
    await until('it waits', async () => process.listenerCount(signal) > before)
    process.emit(signal)
    const ran = await ending
    expect(ran).toMatchObject({ exitCode: 1, stderr: '' })
    expect(ran.stdout).toMatch(/^Denied\n/)
    expect(ran.stdout).toContain('The change is written, but no receiver has reported yet.')
    expect(process.listenerCount(signal)).toBe(before)
  },
)

describe('deny --file', () => {
  const line = (changes: object = {}): string =>
    JSON.stringify({ kind: 'caller', value: 'billing', reason: 'stolen', until: null, ...changes })
  const denyFile = async (lines: readonly string[], more: readonly string[] = []): Promise<Ran> => {
    const file = await temporaryFile(lines.join('\n'), 0o644)
    return await change(['deny', '--file', file, '--wait=1s', ...more])
  }

  it('denies every line under one version, and names the entries that did not count', async () => {
    const one = await receiver('one')
    await change(['deny', 'key', 'd-1', '--for=forever', '--reason=earlier', '--by=anna'])
    const cutOff = Math.floor(Date.now() / 1000)
    const lines = [
      line(),
      line({ kind: 'key', value: 'd-1', issuer: POLICY.issuer, until: 99_999_999_999 }),
      line({ kind: 'issued-before', value: cutOff, by: 'me', at: 5 }),
      '',
    ]
    const ran = await denyFile(lines, ['--by', 'ops'])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(masked(ran.stdout)).toMatch(
      /^Denied N entries\nAn earlier entry stays in force for N of/,
    )
    expect(ran.stdout).toMatch(/\n {2}key {2}d-1 +https:.*forever +anna +earlier\n/)
    expect(one.lists(POLICY.issuer)).toMatchObject({ issuedBefore: cutOff })
    const entries = await openDenylist(redis).entries()
    expect(entries.map(({ by }) => by).toSorted()).toEqual(['anna', 'me', 'ops'])
  })

  it('takes issuer, end and reason of all lines from the options, and answers as JSON', async () => {
    await receiver('one')
    const bare = ['t1', 't2'].map((value) => JSON.stringify({ kind: 'token', value }))
    const ran = await denyFile(bare, [...WHY, '--json'])
    expect(ran.exitCode).toBe(0)
    expect(ran.json()).toMatchObject({
      version: expect.any(Number),
      entries: ['t1', 't2'].map((value) => ({
        entry: { issuer: POLICY.issuer, kind: 'token', value, by: 'ops', reason: 'its key leaked' },
        isEarlier: false,
      })),
      receivers: { applied: 1, of: 1, missing: [] },
    })
  })

  it.each<[string, readonly string[], RegExp]>([
    ['no line', [''], /--file must name a file of 1 to 1000 lines/],
    ['1001 lines', Array(1001).fill(line()), /--file must name a file of 1 to 1000 lines/],
    ['no JSON', [line(), '{'], /line 2 of --file is not a JSON object/],
    ['a list', [line(), '', '[]'], /line 3 of --file is not a JSON object/],
    ['another kind', [line(), line({ kind: 'route' })], /line 2 of --file: kind must be/],
    ['another member', [line({ note: 'x' })], /line 1 of --file: note is not an option/],
    [
      'an end that has passed',
      [line({ until: 5 })],
      /line 1 of --file: until must be later than now/,
    ],
    ['a cut-off ahead', [line({ kind: 'issued-before', value: ahead })], /more than 60 s ahead/],
  ])('changes nothing for %s', async (_what, lines, message) => {
    expectFailure(await denyFile(lines), 2, message)
    expect(await isUnchanged()).toBe(true)
  })
})

it('deny says that an earlier entry still counts, and shows that', async () => {
  await receiver('one')
  await change(['deny', 'caller', 'billing', '--for=forever', '--reason=stolen', '--by=anna'])
  const ran = await change(['deny', 'caller', 'billing', ...WHY])
  expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
  expect(ran.stdout).toMatch(/^Already denied: the earlier entry ends later and stays in force\n/)
  expect(ran.stdout).toMatch(/until +forever\n {2}reason +stolen\n {2}by +anna\n/)
  const json = await change(['deny', 'caller', 'billing', ...WHY, '--json'])
  expect(json.json()).toMatchObject({ isEarlier: true, entry: { reason: 'stolen', by: 'anna' } })
})

describe('allow', () => {
  it('ends an entry', async () => {
    const one = await receiver('one')
    await change(['deny', 'caller', 'billing', ...WHY])
    const ran = await change(['allow', 'caller', 'billing', '--reason=replaced', '--by=ops'])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    expect(ran.stdout).toMatch(/^Allowed again\n {2}caller {2}billing\n/)
    expect(one.lists(POLICY.issuer)?.callers.size).toBe(0)
  })

  it('ends with 1 where nothing was listed', async () => {
    await receiver('one')
    const ran = await change(['allow', 'issued-before', '--reason=x', '--json'])
    expect(ran).toMatchObject({ exitCode: 1, stderr: '' })
    expect(ran.json()).toMatchObject({ wasListed: false, receivers: { applied: 1, of: 1 } })
  })
})

describe('denylist', () => {
  it('shows entries and receivers', async () => {
    await receiver('one')
    await change(['deny', 'caller', 'billing', ...WHY])
    const ran = await service(['denylist'])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    const [head, row, , title, line] = masked(ran.stdout).split('\n')
    expect(head).toMatch(/^denied +value +issuer +until +by +since +reason$/)
    expect(row).toMatch(/^caller {2}billing {2}https:\/\/core.example {2}in N (h|min) {2,}ops {2}/)
    expect(title).toMatch(/^receiver +list +seen$/)
    expect(line).toMatch(/^one +up to date +N s ago$/)
  })

  it('names a row that nobody can read', async () => {
    await redis.command('HSET', 'esa:{denylist}:entries', 'or\u202ders', '1|-|-')
    const ran = await service(['denylist'])
    expectFailure(ran, 3, 'no receiver can read the field or\\u202ders of its hash entries')
  })

  it('ends with 1 where nothing is denied', async () => {
    const ran = await service(['denylist', '--json'])
    expect(ran).toMatchObject({ exitCode: 1, stderr: '' })
    expect(ran.json()).toMatchObject({ version: 0, entries: [], receivers: [] })
  })
})
