import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An exchange with the core, by what is asked for. */
export interface Exchange {
  readonly method: string
  /** Without the query. */
  readonly path: string
}

/** A place in an exchange: the core has not got the request yet, or has sent its reply. */
export type Moment = 'request' | 'reply'

export interface HttpProxy {
  readonly url: string
  /**
   * Asked at each moment of each exchange. At `cut` the reply never comes; the core has then done
   * what it was asked for at both moments.
   */
  watch(at: (moment: Moment, exchange: Exchange) => 'pass' | 'cut'): void
  close(): Promise<void>
}

interface Reply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** Passes whole requests and whole replies on; a request goes on also when its sender has died. */
export async function startHttpProxy(target: () => string): Promise<HttpProxy> {
  let at: (moment: Moment, exchange: Exchange) => 'pass' | 'cut' = () => 'pass'
  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy())
  })

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = '', url = '' } = incoming
    const body = await bodyOf(incoming)
    const exchange = { method, path: url.split('?')[0] ?? '' }
    const isCut = at('request', exchange) === 'cut'
    const reply = await forward(new URL(url, target()), incoming, body)
    if (at('reply', exchange) === 'cut' || isCut) {
      outgoing.destroy()
      return
    }
    outgoing.writeHead(reply.status, reply.headers)
    outgoing.end(reply.body)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    watch(next) {
      at = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function bodyOf(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function forward(url: URL, incoming: IncomingMessage, body: Buffer): Promise<Reply> {
  const { method, headers } = incoming
  const outgoing = request(url, { method, headers: { ...headers, host: url.host }, agent: false })
  outgoing.end(body)
  const [reply] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { status: reply.statusCode ?? 502, headers: reply.headers, body: await bodyOf(reply) }
}
