import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from './kit.js'

/** A certificate of localhost and 127.0.0.1, and the authority that has signed it. */
export interface Certificate {
  readonly key: Buffer
  readonly cert: Buffer
  /** The path of the authority's certificate, for NODE_EXTRA_CA_CERTS. */
  readonly authority: string
}

/** Makes an authority for one test, and a certificate by it that holds for so many days. */
export async function makeCertificate(days: number): Promise<Certificate> {
  const folder = await temporaryFolder()
  const openssl = (...words: string[]): unknown =>
    execFileSync('openssl', words, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const subject = '/CN=Test authority\u001b[2J/O=Tests'
  openssl('req', '-x509', ...curve, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', subject)
  openssl('req', ...curve, '-keyout', 'key', '-out', 'csr', '-subj', '/CN=localhost')
  await writeFile(join(folder, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n')
  const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', 'names']
  openssl('x509', '-req', '-in', 'csr', ...by, '-days', String(days), '-out', 'cert')
  return {
    key: await readFile(join(folder, 'key')),
    cert: await readFile(join(folder, 'cert')),
    authority: join(folder, 'ca.crt'),
  }
}
