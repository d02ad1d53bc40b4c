import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { freePort } from '../support/network/free-port.js'
import { findProgram } from '../support/process/find-program.js'
import { type Certificate, makeClientCertificates } from '../support/tls/client-certificates.js'
import { type PlacedBlocks, placeBlocks, readDocument } from './blocks.js'
import { startBlock } from './running-blocks.js'

const issuer = await createTestIssuer()
const certificates = await makeClientCertificates()
const { ca, server, client, other, chained } = certificates
const document = await readDocument('docs/bound-tokens.md')
let placed: PlacedBlocks
let folder: string
beforeAll(async () => {
  placed = await placeBlocks('bound-tokens', 'docs/bound-tokens.md')
  folder = await mkdtemp(join(tmpdir(), 'esa-proxy-'))
  await writeFile(join(folder, 'server.crt'), server.cert)
  await writeFile(join(folder, 'server.key'), server.key)
  await writeFile(join(folder, 'callers-ca.crt'), ca)
  // nginx may drop its privileges.
  await chmod(folder, 0o755)
})
afterAll(async () => {
  await Promise.all([placed.remove(), issuer.close(), rm(folder, { recursive: true })])
})

/** Writes the recipe of the document, with ports of this test; resolves with the command that runs it. */
async function nginx(port: number, receiver: string): Promise<readonly [string, ...string[]]> {
  const recipe = (/^```nginx\n(.*?)^```$/ms.exec(document)?.[1] ?? '')
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('127.0.0.1:3000', receiver)
    .replaceAll(/[\w-]+\.(?:crt|key)/g, (name) => join(folder, name))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${join(folder, kind)};`,
  )
  const http = ['access_log off;', ...paths, recipe].join('\n')
  const main = `daemon off; pid ${join(folder, 'pid')}; error_log stderr; events {}`
  const file = join(folder, 'nginx.conf')
  await writeFile(file, `${main}\nhttp {\n${http}\n}`)
  const binary = findProgram({
    variable: 'NGINX_BIN',
    names: ['nginx'],
    package: 'nginx-light',
    otherFolders: ['/usr/sbin'],
    remedy: 'Install nginx, or name it in the environment variable NGINX_BIN.',
  })
  return [binary, '-e', 'stderr', '-c', file]
}

async function startProxy(receiver: string): Promise<number> {
  const port = await freePort()
  const [binary, ...args] = await nginx(port, receiver)
  const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const complaints = text(child.stderr)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`${binary}: ${await complaints}`)
    await delay(20)
  }
  return port
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
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
  const app = await startBlock(placed, 'Behind nginx', { ISSUER: issuer.url })
  onTestFinished(async () => void (await app.stop('SIGKILL')))
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
