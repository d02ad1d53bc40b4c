import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hash } from '../../../src/base/supported-node.js'

/** A certificate with its key, as a TLS client takes them. */
export interface Certificate {
  /** PEM of the certificate, followed by its intermediate authority, if any. */
  readonly cert: string
  readonly key: string
  readonly der: Uint8Array
  /** `x5t#S256` of RFC 8705. */
  readonly thumbprint: string
}

/** Certificates of one test authority. Each test file makes its own. */
export interface Certificates {
  /** PEM of the authority. */
  readonly ca: string
  /** For localhost and 127.0.0.1. */
  readonly server: Certificate
  /** Issued by the authority itself: the client sends one certificate. */
  readonly client: Certificate
  readonly other: Certificate
  readonly expired: Certificate
  /** Issued by an intermediate authority: the client sends two certificates. */
  readonly chained: Certificate
}

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

interface Issued {
  readonly by?: string
  readonly days?: number
  readonly extensions?: string
}

export async function makeClientCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-certificates-'))
  const openssl = (...words: string[]): unknown =>
    execFileSync('openssl', words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8')

  async function issue(name: string, { by = 'ca', days = 2, extensions = '' }: Issued = {}) {
    openssl('req', ...CURVE, '-keyout', `${name}.key`, '-out', 'csr', '-subj', `/CN=${name}`)
    await writeFile(join(folder, 'extensions'), extensions)
    const signer = ['-CA', `${by}.crt`, '-CAkey', `${by}.key`, '-CAcreateserial']
    const life = ['-days', String(days), '-extfile', 'extensions']
    openssl('x509', '-req', '-in', 'csr', ...signer, ...life, '-out', `${name}.crt`)
    const certificate = await read(`${name}.crt`)
    const der = new X509Certificate(certificate).raw
    return {
      cert: by === 'ca' ? certificate : certificate + (await read(`${by}.crt`)),
      key: await read(`${name}.key`),
      der,
      thumbprint: hash('sha256', der, 'base64url'),
    }
  }

  try {
    const subject = ['-subj', '/CN=Test authority', '-days', '2']
    openssl('req', '-x509', ...CURVE, '-keyout', 'ca.key', '-out', 'ca.crt', ...subject)
    await issue('middle', { extensions: 'basicConstraints=critical,CA:TRUE' })
    return {
      ca: await read('ca.crt'),
      server: await issue('server', { extensions: 'subjectAltName=DNS:localhost,IP:127.0.0.1' }),
      client: await issue('client'),
      other: await issue('other'),
      expired: await issue('expired', { days: -1 }),
      chained: await issue('chained', { by: 'middle' }),
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}
