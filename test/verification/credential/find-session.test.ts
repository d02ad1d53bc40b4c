import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ServiceAuthError } from '../../../src/base/decision/service-auth-error.js'
import {
  readAuthorization,
  readSessionHeader,
} from '../../../src/verification/credential/authorization.js'
import { findSession } from '../../../src/verification/credential/find-session.js'

const encode = (header: object): string => Buffer.from(JSON.stringify(header)).toString('base64url')
const SESSION = `${encode({ kid: 'd-1', version: '5' })}.e30.c2ln`
const SERVICE = `${encode({ kid: 'd-1' })}.e30.c2ln`
const NAME = 'sAccessToken'

/** As Node gives them: of `Authorization` the first, of `Cookie` all. */
function request(lines: readonly (readonly [name: string, value: string])[], more: object = {}) {
  const valuesOf = (wanted: string) =>
    lines.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
  const [authorization] = valuesOf('authorization')
  const cookies = valuesOf('cookie')
  const headers = {
    ...(authorization !== undefined && { authorization }),
    ...(cookies.length > 0 && { cookie: cookies.join('; ') }),
  }
  return { rawHeaders: lines.flat(), headers, ...more }
}

const authorization = (...values: string[]) =>
  readAuthorization(request(values.map((value) => ['Authorization', value]))).type
const inCookies = (...values: string[]) =>
  findSession(request(values.map((value) => ['Cookie', value])), NAME).type

describe('the Authorization header', () => {
  it('is a session’s where it is one bearer token with a version', () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEARER']) {
      expect(authorization(`${scheme} ${SESSION}`)).toBe('session')
      expect(authorization(`${scheme} ${SERVICE}`)).toBe('service')
    }
  })

  it('is absent only where there is none', () => {
    expect(authorization()).toBe('absent')
    expect(authorization('')).toBe('service')
  })

  it.each([
    [`Bearer  ${SESSION}`],
    [`Bearer\t${SESSION}`],
    [`Bearer \u00a0${SESSION}`],
    [`Bearer${SESSION}`],
    [` Bearer ${SESSION}`],
    [`Bearer ${SESSION},Bearer ${SERVICE}`],
    [`Basic ${SESSION}`],
    [SESSION],
    ['Bearer'],
    [`Bearer ${SESSION}`, `Bearer ${SESSION}`],
    [`Bearer ${SESSION}`, ''],
    ['', `Bearer ${SESSION}`],
  ])('is a service’s otherwise: %j %j', (...values) => {
    expect(authorization(...values)).toBe('service')
  })

  it('is nobody’s where the headers hold another value than was sent', () => {
    const lines = [['Authorization', `Bearer ${SESSION}`]] as const
    const changed = [
      {},
      { authorization: `Bearer ${SERVICE}` },
      { authorization: `Bearer ${SESSION} ` },
    ]
    for (const headers of changed) {
      expect(() => readAuthorization(request(lines, { headers }))).toThrow(ServiceAuthError)
    }
    const headers = { authorization: `Bearer ${SESSION}` }
    expect(() => readAuthorization(request([], { headers }))).toThrow(ServiceAuthError)
  })
})

describe('a session', () => {
  it('is found in the Authorization header where no cookie has its name', () => {
    const find = (value: string, ...cookies: string[]) => {
      const sent = cookies.map((cookie) => ['Cookie', cookie] as const)
      return findSession(request([['Authorization', value], ...sent]), NAME)
    }
    const header = readSessionHeader(SESSION)
    expect(find(`Bearer ${SESSION}`)).toEqual({ type: 'token', header })
    expect(find(`Bearer ${SESSION}`, 'a=b')).toEqual({ type: 'token', header })
    expect(find(`Bearer ${SERVICE}`)).toEqual({ type: 'absent' })
    const refused = { type: 'refused', reason: 'credentials_ambiguous' }
    for (const token of [SESSION, SERVICE]) {
      expect(find(`Bearer ${token}`, `${NAME}=${SESSION}`)).toEqual(refused)
      expect(find(`Bearer ${token}`, NAME)).toEqual(refused)
    }
  })

  it('may be in a cookie with a name that cannot be decoded', () => {
    expect(findSession(request([['Cookie', `%zz=${SESSION}`]]), '%zz').type).toBe('token')
  })

  it('is found in the one cookie of its name', () => {
    for (const cookie of [
      `${NAME}=${SESSION}`,
      `a=b; ${NAME}=${SESSION} ; c`,
      `a=b; ${NAME}=${SESSION} \t ; c`,
      `;;${NAME} =${SESSION};`,
    ]) {
      expect(inCookies(cookie)).toBe('token')
      expect(inCookies('a', cookie, 'b=c')).toBe('token')
      expect(inCookies(cookie, cookie)).toBe('refused')
    }
  })

  it.each([
    '',
    'a=b',
    `x${NAME}=${SESSION}`,
    `${NAME}x=${SESSION}`,
    NAME.toLowerCase(),
    `a=${NAME}=${SESSION}`,
    `a=1, ${NAME}=${SESSION}`,
  ])('is absent in the cookies %j', (cookies) => {
    expect(inCookies(cookies)).toBe('absent')
  })

  it.each([
    NAME,
    `${NAME}=`,
    `${NAME}="${SESSION}"`,
    `${NAME}= ${SESSION}`,
    `${NAME}=${SESSION}\u00a0; a=b`,
    `${NAME}=${SESSION.replace('.', '%2e')}`,
    `%73AccessToken=${SESSION}`,
    `%20${NAME}=${SESSION}`,
    `${NAME}%09=${SESSION}`,
    `${NAME}=${SESSION}; %73%41ccessToken`,
    `${NAME}=${SESSION}; \u00a0${NAME}\u00a0=x`,
  ])('is refused in the cookies %j', (cookies) => {
    expect(findSession(request([['Cookie', cookies]]), NAME)).toEqual({
      type: 'refused',
      reason: 'session_token_malformed',
    })
  })

  it('is nobody’s where the headers hold other cookies than were sent', () => {
    const sent = [['Cookie', `${NAME}=${SESSION}`]] as const
    const other = [`${NAME}=x`, `${NAME}=${SESSION}; ${NAME}`, `%73AccessToken=${SESSION}`]
    for (const cookie of [undefined, '', ...other]) {
      expect(() => findSession(request(sent, { headers: { cookie } }), NAME)).toThrow(
        ServiceAuthError,
      )
    }
    const added = { headers: { cookie: `a=b; ${NAME}=${SESSION}` } }
    expect(() => findSession(request([['Cookie', 'a=b']], added), NAME)).toThrow(ServiceAuthError)
    expect(() => findSession(request([], added), NAME)).toThrow(ServiceAuthError)
    const without = { headers: { cookie: `${NAME}=${SESSION}` } }
    expect(findSession(request([['Cookie', `a=b; ${NAME}=${SESSION}`]], without), NAME).type).toBe(
      'token',
    )
  })

  it.each([null, undefined, false, 0, ''])('is found where request.cookies are %j', (cookies) => {
    expect(findSession(request([['Cookie', `${NAME}=${SESSION}`]], { cookies }), NAME).type).toBe(
      'token',
    )
    expect(findSession(request([], { cookies }), NAME).type).toBe('absent')
  })

  it('is found where request.cookies hold the same value, and refused where they alone hold one', () => {
    const cookies = { [NAME]: SESSION }
    const sent = [['Cookie', `${NAME}=${SESSION}`]] as const
    const header = readSessionHeader(SESSION)
    expect(findSession(request(sent, { cookies }), NAME)).toEqual({ type: 'token', header })
    expect(findSession(request([], { cookies }), NAME).type).toBe('refused')
  })

  it.each([{}, [], 'text', 7, { [NAME]: null }, { [NAME]: [SESSION] }, { [NAME]: `${SESSION}x` }])(
    'is refused where request.cookies are %j',
    (cookies) => {
      expect(findSession(request([['Cookie', `${NAME}=${SESSION}`]], { cookies }), NAME).type).toBe(
        'refused',
      )
    },
  )

  it('is read as any reader reads it, or refused', () => {
    const signs = ['%73AccessToken', ' ', ';', '=', '"', ',', 'a', '%']
    const part = fc.constantFrom(NAME, SESSION, SERVICE, ...signs)
    const header = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.array(header, { maxLength: 3 }), (headers) => {
        const lines = headers.map((value) => ['cookie', value.trim()] as const)
        const found = findSession(request(lines), NAME)
        const text = lines.map(([, value]) => value).join('; ')
        const values = READERS.map((read) => read(text))
        if (found.type === 'token') {
          expect(new Set(values).size).toBe(1)
          expect(readSessionHeader(values[0] ?? '')).toBe(found.header)
        } else if (found.type === 'absent') {
          expect(values).toEqual(READERS.map(() => undefined))
        }
      }),
      { numRuns: 3000 },
    )
  })
})

/** Ways to read cookies that are in use: the first or the last counts, names are decoded or not. */
const READERS = [false, true].flatMap((isDecoding) =>
  [false, true].map((isLast) => (text: string): string | undefined => {
    const values = text.split(';').flatMap((pair) => {
      const at = pair.indexOf('=')
      if (at < 0) return []
      const [name, text] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()]
      const value = text.replace(/^"(.*)"$/, '$1')
      return (isDecoding ? decoded(name) : name) === NAME ? [value] : []
    })
    return values.at(isLast ? -1 : 0)
  }),
)

function decoded(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
