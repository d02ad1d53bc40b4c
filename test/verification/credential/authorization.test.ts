import { describe, expect, it } from 'vitest'
import { readSessionHeader } from '../../../src/verification/credential/authorization.js'

const encode = (header: string | Uint8Array): string => Buffer.from(header).toString('base64url')
const tokenOf = (header: string | Uint8Array, rest = '.e30.c2ln'): string => encode(header) + rest

const GOOD = '{"kid":"d-1","typ":"JWT","version":"5","alg":"RS256"}'

describe('a session token', () => {
  it.each([
    GOOD,
    '{"version":null}',
    '{"\\u0076ersion":"5"}',
    '{"version":"5","version":null}',
    '{"__proto__":{},"version":"5"}',
    ' {"version" : "5" }\n',
  ])('has the member version in its header: %s', (header) => {
    expect(readSessionHeader(tokenOf(header))).toEqual(JSON.parse(header))
  })

  it.each(['.e30.c2ln', '.e30.c2lh', '..', '.e30.', '.---.___'])(
    'may be damaged behind its header: %s',
    (rest) => {
      expect(readSessionHeader(tokenOf(GOOD, rest))).toMatchObject({ version: '5' })
    },
  )

  it.each([
    ['no version', '{"kid":"d-1","typ":"JWT","alg":"RS256"}'],
    ['another case', '{"Version":"5"}'],
    ['an inherited one', '{"__proto__":{"version":"5"}}'],
    ['one in an array', '["version"]'],
    ['null', 'null'],
    ['nothing', ''],
    ['half a JSON', '{"version":"5"'],
    ['a byte order mark', `\ufeff${GOOD}`],
    ['no UTF-8', Buffer.from(`${GOOD.slice(0, -1)},"x":"\xff"}`, 'latin1')],
  ])('is none with %s', (_what, header) => {
    expect(readSessionHeader(tokenOf(header))).toBeUndefined()
  })

  it.each([
    '',
    '..',
    encode(GOOD),
    tokenOf(GOOD, '.e30'),
    tokenOf(GOOD, '.e30.c2ln.'),
    tokenOf(GOOD, '.e30.c2ln='),
    tokenOf(GOOD, '.e30.c2ln e30'),
    ` ${tokenOf(GOOD)}`,
    tokenOf(GOOD, '=.e30.c2ln'),
  ])('is none in another form: %j', (token) => {
    expect(readSessionHeader(token)).toBeUndefined()
  })

  it('has one spelling of its header', () => {
    // One byte of the last four characters does not count: Node decodes them all.
    const spelt = tokenOf('{"version":"5"} ')
    const [header = ''] = spelt.split('.')
    expect(header.length % 4).toBe(2)
    expect(readSessionHeader(spelt)).toBeDefined()
    for (const last of 'BCDEFGHIJKLMNOP') {
      const other =
        header.slice(0, -1) + String.fromCharCode(header.charCodeAt(header.length - 1) + 1)
      expect(Buffer.from(other, 'base64url')).toEqual(Buffer.from(header, 'base64url'))
      expect(readSessionHeader(`${other}.e30.c2ln`)).toBeUndefined()
      expect(readSessionHeader(`${header}${last}.e30.c2ln`)).toBeUndefined()
    }
    expect(readSessionHeader(`${header.slice(0, 4)}!${header.slice(4)}.e30.c2ln`)).toBeUndefined()
  })

  it('has a header of at most 1 KiB', () => {
    const ofLength = (length: number): string => GOOD + ' '.repeat(length - GOOD.length)
    for (const length of [200, 1022, 1023, 1024]) {
      expect(readSessionHeader(tokenOf(ofLength(length)))).toBeDefined()
    }
    for (const length of [1025, 1026, 1027, 8192, 1_000_000]) {
      expect(readSessionHeader(tokenOf(ofLength(length)))).toBeUndefined()
    }
  })
})
