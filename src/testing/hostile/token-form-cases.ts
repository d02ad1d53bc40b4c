import { MAX_TOKEN_LENGTH } from '../../base/raw-headers.js'
import { rs256 } from '../issuer/compact-token.js'
import {
  DEPTH,
  type Draft,
  type Drafts,
  type HostileToken,
  malformedParts,
  type TokenForge,
} from './forge.js'

/** A depth that fits into 16 KiB of headers, without closing brackets. */
const OPEN_DEPTH = 10_000

/** Malformed tokens, with a correct signature if one is possible. */
export const formCases = (forge: TokenForge): HostileToken[] =>
  forge.groups({
    'A compact JWS has three segments': segmentCases(forge),
    'A token is at most 8 KiB long': sizeCases(forge),
    'Segments are base64url, without padding, in one spelling only': encodingCases(forge),
    'Header and payload are JSON objects in UTF-8': jsonCases(forge),
    'An empty object says nothing': {
      'a header that is {}': forge.token({ header: '{}' }),
      'a payload that is {}': forge.token({ payload: '{}' }),
    },
  })

function segmentCases({ good }: TokenForge): Drafts {
  const [header, payload, signature] = good.split('.')
  return {
    'one segment': header ?? '',
    'two segments': `${header}.${payload}`,
    'two segments and a dot': `${header}.${payload}.`,
    'four segments': `${good}.${signature}`,
    'four segments, the last empty': `${good}.`,
    'a dot before the token': `.${good}`,
    'nothing but dots': '..',
    'one dot': '.',
    'four thousand segments': Array.from({ length: 4000 }, () => 'a').join('.'),
    'an empty header segment': `.${payload}.${signature}`,
    'an empty payload segment': `${header}..${signature}`,
    'JSON serialisation': JSON.stringify({ protected: header, payload, signature }),
  }
}

const sizeCases = (forge: TokenForge): Drafts => ({
  '8 KiB and one character': tokenOfLength(forge, MAX_TOKEN_LENGTH + 1),
  'thousands of permissions': forge.withClaims({
    permissions: Array.from({ length: 1200 }, (_, index) => `p${index}`),
  }),
  'a run of 12,000 characters': 'A'.repeat(12_000),
})

/** A valid token, padded to `length` characters. */
function tokenOfLength(forge: TokenForge, length: number): string {
  // Base64url text cannot have every length, so the header varies too.
  for (const x of ['', 'x', 'xx']) {
    const make = (filler: number): string =>
      forge.token({
        header: { ...forge.header, x },
        payload: { ...forge.claims, filler: 'x'.repeat(filler) },
      })
    const start = Math.floor(((length - make(0).length) * 3) / 4)
    for (const filler of [start - 1, start, start + 1]) {
      const token = make(Math.max(0, filler))
      if (token.length === length) return token
    }
  }
  throw new RangeError(`no good token has ${length} characters`)
}

function encodingCases({ good, header: members, token }: TokenForge): Drafts {
  const [header = '', payload = '', signature = ''] = good.split('.')
  const odd = [...'+/%~*!\\,;:@\u00e9\u00a0'].map(
    (character): Draft => [
      `a character that is not base64url: ${JSON.stringify(character)}`,
      `${header}.${character}${payload.slice(1)}.${signature}`,
    ],
  )
  const amid = (text: string, put: string): string => text.slice(0, 8) + put + text.slice(8)
  return {
    ...Object.fromEntries(odd),
    'a blank within the payload': `${header}.${amid(payload, ' ')}.${signature}`,
    'a tab within the signature': `${header}.${payload}.${amid(signature, '\t')}`,
    'padding after the header': `${header}=.${payload}.${signature}`,
    'padding after the payload': `${header}.${payload}=.${signature}`,
    'padding after the signature': `${good}==`,
    'padding amid the signature': `${header}.${payload}.${amid(signature, '=')}`,
    'a signature in another spelling of the same bytes': `${header}.${payload}.${respell(signature)}`,
    'a header of a length that base64url does not have': oddLength(token({ header: pad(members) })),
    'standard base64 instead of base64url': `${good.replaceAll('-', '+').replaceAll('_', '/')}+`,
  }
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Sets an unused bit of the last character; in a signature of 256 bytes, four bits are unused. */
function respell(signature: string): string {
  const last = ALPHABET.indexOf(signature.charAt(signature.length - 1))
  return signature.slice(0, -1) + ALPHABET.charAt(last | 1)
}

/** Appends one character too many: decoders that drop it read the same header. */
function oddLength(token: string): string {
  const [header = '', ...rest] = token.split('.')
  return [`${header}A`, ...rest].join('.')
}

/** Pads header text so that its encoding ends with a whole group of four, and one more character is invalid. */
function pad(header: object): string {
  const text = JSON.stringify(header)
  return text.padEnd(Math.ceil(text.length / 3) * 3)
}

function jsonCases(forge: TokenForge): Draft[] {
  const nested = `${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`
  const header = `{"deep":${nested},${JSON.stringify(forge.header).slice(1)}`
  const signer = rs256(forge.attacker.privateKey)
  return [
    ...malformedParts(forge),
    [
      'a header with a member that nests deeply, signed by a stranger',
      forge.token({ header, signer }),
    ],
    ['a payload that nests 10,000 deep', forge.token({ payload: '['.repeat(OPEN_DEPTH) })],
  ]
}
