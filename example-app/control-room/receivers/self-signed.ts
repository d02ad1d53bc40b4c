import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'

/** A certificate that nobody else has signed, and its key, in PEM. */
export interface SelfSigned {
  readonly cert: string
  readonly key: string
}

const DAY_MS = 86_400_000
const VALID_DAYS = 365

const SEQUENCE = 0x30
const SET = 0x31
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const OBJECT_ID = 0x06
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
/** Members of a certificate with a tag of its own (RFC 5280, section 4.1), and of a `GeneralName`. */
const VERSION = 0xa0
const EXTENSIONS = 0xa3
const IP_ADDRESS = 0x87

const VERSION_3 = Buffer.of(2)
const NO_UNUSED_BITS = Buffer.of(0)
const LOOPBACK = Buffer.of(127, 0, 0, 1)
const COMMON_NAME = Buffer.from('550403', 'hex')
const SUBJECT_ALT_NAME = Buffer.from('551d11', 'hex')
const ECDSA_WITH_SHA256 = Buffer.from('2a8648ce3d040302', 'hex')

/** Makes a certificate for this machine (127.0.0.1): Node makes keys, and no certificates. */
export function selfSigned(name: string, now = Date.now()): SelfSigned {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = der(SEQUENCE, der(OBJECT_ID, ECDSA_WITH_SHA256))
  const commonName = der(SEQUENCE, der(OBJECT_ID, COMMON_NAME), der(UTF8_STRING, Buffer.from(name)))
  const who = der(SEQUENCE, der(SET, commonName))
  const addresses = der(SEQUENCE, der(IP_ADDRESS, LOOPBACK))
  const extension = der(SEQUENCE, der(OBJECT_ID, SUBJECT_ALT_NAME), der(OCTET_STRING, addresses))
  const body = der(
    SEQUENCE,
    der(VERSION, der(INTEGER, VERSION_3)),
    der(INTEGER, serialNumber()),
    algorithm,
    who,
    der(SEQUENCE, utcTime(now - DAY_MS), utcTime(now + VALID_DAYS * DAY_MS)),
    who,
    publicKey.export({ format: 'der', type: 'spki' }),
    der(EXTENSIONS, der(SEQUENCE, extension)),
  )
  const signature = der(BIT_STRING, NO_UNUSED_BITS, sign('sha256', body, privateKey))
  return {
    cert: pem(der(SEQUENCE, body, algorithm, signature)),
    key: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  }
}

/** A positive number. */
const serialNumber = (): Buffer => Buffer.concat([Buffer.of(1), randomBytes(15)])

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(tag, ...lengthOf(content)), content])
}

function lengthOf({ length }: Buffer): number[] {
  if (length < 0x80) return [length]
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
}

/** `YYMMDDhhmmssZ` */
const utcTime = (ms: number): Buffer =>
  der(UTC_TIME, Buffer.from(`${new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14)}Z`))

const pem = (bytes: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----\n`
