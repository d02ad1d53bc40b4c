import { type RoomServer, serveRoom } from '../../example-app/control-room/server/serve-room.js'
import { rawRequest } from '../support/network/raw-exchange.js'
import { FILES, quietRoom } from './quiet-room.js'

export interface Asked {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly string[]
  readonly body?: string
}

/** The server of a quiet room, and who asks it byte by byte. */
export async function openGate() {
  const quiet = quietRoom()
  const server: RoomServer = await serveRoom({ room: async () => quiet.room, files: FILES })
  const address = new URL(server.address)
  const port = Number(address.port)
  const key = address.pathname.slice(1, -1)
  const own = `127.0.0.1:${port}`

  /** Status and body; `path` is behind the key. */
  async function ask({ path = '/', host = own, ...rest }: Asked = {}): Promise<string> {
    return brief(await rawRequest(port, { ...rest, host, path: `/${key}${path}` }))
  }

  /** An action, as the page asks for it. */
  function post({ headers = [`Origin: http://${own}`], body = '{}', ...rest }: Asked = {}) {
    const lines = ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]
    const all = { method: 'POST', path: '/api/call', headers: [...lines, ...headers], body }
    return ask({ ...all, ...rest })
  }

  return { quiet, port, key, own, ask, post, close: server.close }
}

/** Status and body of an answer. */
export function brief(answer: string): string {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  return `${head.split(' ')[1]} ${body}`
}
