import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeSigningKey, POLICY } from '../../support/issuer/signing-keys.js'
import { type Certificate, makeCertificate } from '../certificates.js'
import { runChild, temporaryFile } from '../kit.js'

const keys = [makeSigningKey('d-1').jwk, makeSigningKey('d-2').jwk]

/** The path of a policy whose key set is served with this certificate. */
async function serveWith({ key, cert }: Certificate, host = 'localhost'): Promise<string> {
  const server = createServer({ key, cert }, (_request, response) => {
    response.setHeader('cache-control', 'max-age=600').end(JSON.stringify({ keys }))
  })
  server.listen(0, host === 'localhost' ? '127.0.0.1' : host)
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const jwksUri = `https://${host}:${port}/jwks.json`
  return await temporaryFile(JSON.stringify({ ...POLICY, jwksUri }))
}

function examine(policy: string, env: Readonly<Record<string, string>> = {}) {
  return runChild(['doctor', '--policy', policy, '--json'], { env, stdin: '' })
}

describe('TLS', () => {
  it('is shown, with an authority of one’s own', async () => {
    const certificate = await makeCertificate(40)
    const policy = await serveWith(certificate)
    const env = { NODE_EXTRA_CA_CERTS: certificate.authority }
    const ran = await examine(policy, env)
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    const validUntil = Date.now() / 1000 + 40 * 86_400
    expect(ran.json()).toMatchObject({
      keySet: {
        clockOffsetSeconds: 0,
        tls: {
          protocol: 'TLSv1.3',
          validUntil: expect.closeTo(validUntil, -3),
          issuer: 'Test authority\u001b[2J, Tests',
        },
      },
      warnings: [],
      faults: [],
    })
    const shown = await runChild(['doctor', '--policy', policy], { env, stdin: '' })
    expect(shown.stdout).toMatch(
      /^TLS {6}TLSv1\.3, certificate until .*Z \(39 days\), issued by Test authority\\u001b\[2J, Tests$/m,
    )
  })

  it('whose certificate ends soon is a warning', async () => {
    const certificate = await makeCertificate(13)
    const policy = await serveWith(certificate, '127.0.0.1')
    const ran = await examine(policy, { NODE_EXTRA_CA_CERTS: certificate.authority })
    expect(ran.exitCode).toBe(0)
    expect(ran.json()).toMatchObject({
      warnings: [{ code: 'certificate_ending', message: 'the certificate expires in 12 days' }],
    })
  })
})
