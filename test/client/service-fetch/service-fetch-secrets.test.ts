import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ServiceCallError } from '../../../src/client/service-fetch/call-report.js'
import { serviceFetch } from '../../../src/client/service-fetch/service-fetch.js'
import { refusingOrigin } from '../../support/network/free-port.js'
import { knowToken } from '../../support/secret-search/index.js'

const TOKEN = 'the-token-that-an-answer-repeats'
const KEY = 'the-key-that-an-answer-repeats'
knowToken(TOKEN)

/** Answers with these bytes, made of those that it was sent. */
async function startEcho(answerTo: (sent: string) => string): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (sent) => socket.end(answerTo(sent.toString('latin1'))))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const callAt = (origin: string) => {
  const source = { token: async () => TOKEN }
  const call = serviceFetch(source, { origins: [origin], maxAttempts: 1 })
  return call(origin, { method: 'POST', headers: { 'idempotency-key': KEY } })
}

const shown = (error: unknown) =>
  inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true })

describe('what a server sends back stays out of errors, causes included', () => {
  const CHUNKED = 'transfer-encoding: chunked\r\n'
  it.each<[string, (sent: string) => string]>([
    ['as it was sent', (sent) => sent],
    ['in a header', (sent) => `HTTP/1.1 200 OK\r\nBad Header ${sent}\r\n\r\n`],
    ['in a chunk', (sent) => `HTTP/1.1 200 OK\r\n${CHUNKED}\r\nZZ ${sent}`],
  ])('%s', async (_name, answerTo) => {
    const called = callAt(await startEcho(answerTo))
    const error = await called.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ServiceCallError)
    expect(error).toMatchObject({ code: 'network', cause: { name: 'TypeError' } })
    expect(shown(error)).not.toMatch(new RegExp(`${TOKEN}|${KEY}`))
  })

  it('in a chunk of what flows', async () => {
    const head = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${CHUNKED}\r\n`
    const response = await callAt(await startEcho((sent) => `${head}4\r\nabcd\r\nZZ ${sent}`))
    const error = await response.text().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect(shown(error)).not.toMatch(new RegExp(`${TOKEN}|${KEY}`))
  })

  it('and a refused connection is told by its code', async () => {
    await expect(callAt(await refusingOrigin())).rejects.toMatchObject({
      code: 'network',
      message: 'the service gave no whole answer: ECONNREFUSED',
      cause: { code: 'ECONNREFUSED' },
    })
  })
})
