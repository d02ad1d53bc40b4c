import { expect, it } from 'vitest'
import { knowToken } from '../../support/secret-search/index.js'
import { compact, failure, type Members, sourceAt, tokenOf } from '../kit.js'
import { answers, type Lie, mints, startLyingCore } from '../lying-core.js'

/** Rejects unless the source believes the token that comes. */
const tokenBy = async (lie: Lie): Promise<string> =>
  tokenOf(sourceAt((await startLyingCore(lie)).url))

const unexpected = (member: string) => ({
  ...failure('token_unexpected'),
  message: `no service token: token_unexpected, in ${member}`,
})

it('gives every token 128 random bits of its own', async () => {
  const tokens = await Promise.all(Array.from({ length: 5 }, () => tokenBy(mints())))
  const ids = tokens.map((token) => JSON.parse(atob(token.split('.')[1] ?? '')).jti)
  expect(new Set(ids).size).toBe(5)
  for (const id of ids) expect(Buffer.from(id, 'base64url')).toHaveLength(16)
})

it('believes a header without typ, and a dynamic key of any name', async () => {
  expect(await tokenBy(mints({ typ: undefined, kid: 'd-1' }))).toMatch(/^ey/)
})

const HEADERS: Record<string, readonly unknown[]> = {
  alg: [undefined, 'rs256', 'none', 'HS256', ['RS256']],
  kid: [undefined, '', 'd-', 7, 's-5c1e6a1e', 'D-17', ' d-17', 'd-17\n', `d-${'1'.repeat(255)}`],
  typ: ['at+jwt', null],
}
const OTHER_HEADERS: readonly Members[] = [{ version: '5' }, { crit: ['exp'] }, { jku: 'x' }]

const CLAIMS: Record<string, readonly unknown[]> = {
  iss: ['https://other.example', undefined],
  aud: [['orders'], 'refunds', undefined],
  sub: ['reporting', null],
  source: [''],
  token_type: ['Service-Access'],
  jti: ['another', undefined],
  permissions: [
    ...[undefined, 'orders:read', [], ['orders:write', 'orders:read']],
    ['orders:read', 'orders:write', 'orders:refund'],
    { 0: 'orders:read', 1: 'orders:write', length: 2 },
  ],
  iat: [undefined, '1700000000', 1_700_000_000.5],
  exp: [undefined, 1_700_000_299, 1_700_000_302, 1_700_000_300.5, 4_853_600_000],
}
const OTHER_CLAIMS: readonly Members[] = [{ nbf: 1_700_000_000 }, JSON.parse('{"__proto__":{}}')]

it.each([...Object.keys(HEADERS), 'another header parameter'])(
  'does not believe a header that differs in %s',
  async (member) => {
    for (const change of HEADERS[member]?.map((value) => ({ [member]: value })) ?? OTHER_HEADERS) {
      await expect(tokenBy(mints(change))).rejects.toMatchObject(unexpected(member))
    }
  },
)

it.each([...Object.keys(CLAIMS), 'another claim'])(
  'does not believe claims that differ in %s',
  async (member) => {
    for (const change of CLAIMS[member]?.map((value) => ({ [member]: value })) ?? OTHER_CLAIMS) {
      await expect(tokenBy(mints({}, change))).rejects.toMatchObject(unexpected(member))
    }
  },
)

it('does not believe what is no token', async () => {
  const good = compact({ alg: 'RS256' }, { iat: 1 })
  knowToken(good)
  const [header = '', payload = '', signature = ''] = good.split('.')
  const list = Buffer.from('[]').toString('base64url')
  const others = ['', '.', `${header}.${payload}`, `${good}.`, `${good}=`, ` ${good}`]
  const given = (jwt: string) => tokenBy(answers(200, JSON.stringify({ status: 'OK', jwt })))
  for (const other of [...others, `${list}.${payload}.${signature}`])
    await expect(given(other)).rejects.toMatchObject(unexpected('its form'))
  await expect(given(good + 'x'.repeat(8192))).rejects.toMatchObject(unexpected('its size'))
})
