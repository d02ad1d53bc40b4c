import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createProof } from './issuer.js'

const CONNECTIONS = 64
/** More than any server here answers. */
const MAX_ANSWERS_A_MS = 20
const READ_PATH = '/orders/17'
const ORDER = JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' })
const ORDER_HEAD = `Content-Type: application/json\r\nContent-Length: ${ORDER.length}\r\n`

/**
 * The load: keep-alive connections without pipelining, each sending its next request when the last is answered. Raw
 * sockets, because `autocannon` and `undici` need more of their core than the servers that they load. `pools` are
 * tokens by name; of bound ones, each is `{ token, key }`.
 *
 * Returns a function that loads a port for a while. `request` is `{ kind, pool, status }`. It resolves to
 * `{ count, elapsedMs }`, and rejects where an answer has another status.
 */
export function createLoad(pools) {
  /** Each server gets all tokens of a pool in turn, however the turns of others lie between. */
  const cursors = new Map()
  /** The connections to each port stay open between its turns, until its server ends. */
  const connectionsTo = new Map()

  async function load({ port, request, durationMs, connections = CONNECTIONS, tls }) {
    if (!connectionsTo.has(port)) {
      const opening = Array.from({ length: connections }, () =>
        open({ port, tls, onClose: () => connectionsTo.delete(port) }),
      )
      connectionsTo.set(port, await Promise.all(opening))
    }
    const nextAuthorization = authorizations(request.pool, port, durationMs)
    const begin = performance.now()
    let count = 0
    async function keepSending(exchange) {
      while (performance.now() < begin + durationMs) {
        const answer = await exchange(requestText(request.kind, nextAuthorization()))
        if (!answer.startsWith(`HTTP/1.1 ${request.status}`)) throw new Error(answer)
        count += 1
      }
    }
    await Promise.all(connectionsTo.get(port).map(keepSending))
    return { count, elapsedMs: performance.now() - begin }
  }

  function authorizations(pool, port, durationMs) {
    const tokens = pools[pool]
    if (tokens[0].key !== undefined) return proofs(tokens, durationMs * MAX_ANSWERS_A_MS)
    const cursor = `${pool} ${port}`
    return () => {
      const at = cursors.get(cursor) ?? 0
      cursors.set(cursor, (at + 1) % tokens.length)
      return `Bearer ${tokens[at]}`
    }
  }
  return Object.assign(load, { pools })
}

/** Makes the proofs of a turn before it, so that the load has no more to do than without. */
function proofs(tokens, count) {
  const request = { method: 'GET', url: `http://orders${READ_PATH}` }
  const fields = Array.from({ length: count }, (_, index) => {
    const { token, key } = tokens[index % tokens.length]
    return `DPoP ${token}\r\nDPoP: ${createProof(key, token, request)}`
  })
  return () => {
    const next = fields.pop()
    if (next === undefined) throw new Error('there are more requests than proofs')
    return next
  }
}

function requestText(kind, authorization) {
  const common = `Host: orders\r\nAuthorization: ${authorization}\r\n`
  if (kind === 'read') return `GET ${READ_PATH} HTTP/1.1\r\n${common}\r\n`
  return `POST /orders HTTP/1.1\r\n${common}Idempotency-Key: ${randomUUID()}\r\n${ORDER_HEAD}\r\n${ORDER}`
}

/** A connection, as a function that sends a request and resolves to the whole answer. */
async function open({ port, tls, onClose }) {
  const address = { port, host: '127.0.0.1', noDelay: true }
  const socket = tls ? connectTls({ ...address, ...tls }) : connect(address)
  let pending = ''
  let waiting
  socket.on('data', (chunk) => {
    pending += chunk.latin1Slice()
    if (!isWhole(pending)) return
    const answer = pending
    pending = ''
    waiting.resolve(answer)
  })
  socket.on('error', (error) => waiting?.reject(error))
  socket.on('close', () => {
    // A later server may get the same port.
    onClose()
    waiting?.reject(new Error('the connection was closed'))
  })
  await once(socket, tls ? 'secureConnect' : 'connect')
  return (request) =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject }
      socket.write(request, 'latin1', (error) => error && reject(error))
    })
}

function isWhole(text) {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const at = text.indexOf('Content-Length: ')
  if (at === -1 || at > headEnd) throw new Error(`an answer without a length: ${text}`)
  return text.length >= headEnd + 4 + Number.parseInt(text.slice(at + 16, at + 26), 10)
}
