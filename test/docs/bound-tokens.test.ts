import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { freePort } from '../support/network/free-port.js'
import { findProgram } from '../support/process/find-program.js'
import { type Certificate, makeClientCertificates } from '../support/tls/client-certificates.js'
import { until } from '../support/until.js'
import { readDocument } from './documents.js'
import { blocksOf } from './markdown.js'
import { placeBlocks } from './programs.js'

const issuer = await createTestIssuer()
const { ca, server, client, other, chained } = await makeClientCertificates()
const placed = await placeBlocks('bound-tokens', 'docs/bound-tokens.md')
const { folder } = placed
afterAll(() => Promise.all([placed.remove(), issuer.close()]))

/** Starts nginx with the recipe of the document, with ports of this test; resolves with its port. */
async function startProxy(receiver: string): Promise<number> {
  const port = await freePort()
  const [recipe = ''] = blocksOf('nginx', await readDocument('docs/bound-tokens.md'))
  const here = recipe
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('127.0.0.1:3000', receiver)
    .replaceAll(/[\w-]+\.(?:crt|key)/g, (name) => join(folder, name))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${join(folder, kind)};`,
  )
  const http = ['access_log off;', ...paths, here].join('\n')
  const main = `daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}`
  const files = { 'server.crt': server.cert, 'server.key': server.key, 'callers-ca.crt': ca }
  const written = { ...files, 'nginx.conf': `${main}\nhttp {\n${http}\n}` }
  await Promise.all(
    Object.entries(written).map(([name, content]) => writeFile(join(folder, name), content)),
  )
  // nginx may drop its privileges.
  await chmod(folder, 0o755)
  const binary = findProgram({
    variable: 'NGINX_BIN',
    names: ['nginx'],
    package: 'nginx-light',
    otherFolders: ['/usr/sbin'],
    remedy: 'Install nginx, or name it in the environment variable NGINX_BIN.',
  })
  const child = spawn(binary, ['-e', 'stderr', '-c', join(folder, 'nginx.conf')])
  const complaints = text(child.stderr)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  await until('nginx answers', async () => {
    if (child.exitCode !== null) throw new Error(`${binary}: ${await complaints}`)
    return fetch(`http://127.0.0.1:${port}`).then(
      () => true,
      () => false,
    )
  })
  return port
}

interface Call {
  readonly token: string
  readonly certificate?: Certificate
  readonly headers?: Record<string, string>
  readonly agent?: Agent
}

const agentWith = (certificate?: Certificate): Agent =>
  new Agent({ ca, ...(certificate && { cert: certificate.cert, key: certificate.key }) })

async function call(port: number, { token, certificate, headers, agent }: Call) {
  const own = agent ?? agentWith(certificate)
  const options = { port, host: '127.0.0.1', agent: own, headers: { ...headers } }
  const sent = request(options).setHeader('authorization', `Bearer ${token}`)
  sent.end()
  const [response] = await once(sent, 'response')
  const body = await text(response)
  own.destroy()
  return { status: response.statusCode, body }
}

it('accepts a token behind nginx with its certificate alone', async () => {
  await writeFile(join(folder, 'policy.json'), JSON.stringify(issuer.policy()))
  const app = await placed.start('Behind nginx')
  const port = await startProxy(new URL(app.url).host)
  for (const certificate of [client, chained]) {
    const { thumbprint } = certificate
    const token = issuer.token({ cnf: { 'x5t#S256': thumbprint } })
    const accepted = await call(port, { token, certificate })
    expect(accepted).toMatchObject({ status: 200 })
    expect(JSON.parse(accepted.body)).toEqual({ kind: 'certificate', thumbprint })
    expect(await call(port, { token, certificate: other })).toMatchObject({ status: 401 })
    expect(await call(port, { token })).toMatchObject({ status: 401 })
    // A caller that writes the header itself.
    const headers = { 'X-Client-Cert': encodeURIComponent(certificate.cert) }
    expect(await call(port, { token, headers })).toMatchObject({ status: 401 })
    expect(await call(port, { token, headers, certificate: other })).toMatchObject({ status: 401 })
    const again = agentWith(certificate)
    expect(await call(port, { token, agent: again })).toMatchObject({ status: 200 })
    expect(await call(port, { token, agent: again })).toMatchObject({ status: 200 })
  }
})
