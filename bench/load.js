/*
 * The load: keep-alive connections without pipelining, each sending its next request when the last
 * is answered. Raw sockets, because an HTTP client would need more of its core than the server of its
 * own. Asked over IPC: `{ pools }` hands over the tokens, `{ turn }` loads a port for a while.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { createProof } from './proof.js'

const CONNECTIONS = 64
/** All have been used when a server is warm, and none comes again while its first write may wait for the disk. */
const REPLAYED_KEYS = 1000

/** More than any server here answers. */
const MAX_ANSWERS_A_MS = 20

/** Tokens by the name of their pool; of bound ones, each with the `key` that it is bound to. */
const pools = {}
/** Fields with a proof by the name of a pool, each to be sent once. */
const proved = {}
/** Each server gets all tokens of a pool in turn, however the turns of others lie between. */
const cursors = {}
/** The connections to each port stay open between its turns, until its server ends. */
const connectionsTo = {}

/**
 * Loads a port; `requests` is what each connection sends one after the other, again and again. Resolves
 * to how many of each were answered, how long that took, and, where asked for, when the answers came.
 */
async function takeTurn({ port, requests, durationMs, connections, recordsTimes, tls }) {
  connectionsTo[port] ??= await Promise.all(
    Array.from({ length: connections ?? CONNECTIONS }, () => open(port, tls)),
  )
  for (const { pool } of requests) proveAhead(pool, durationMs * MAX_ANSWERS_A_MS)
  const counts = requests.map(() => 0)
  const moments = []
  const begin = performance.now()
  const end = begin + durationMs

  async function keepSending(exchange) {
    while (performance.now() < end) {
      for (const [index, request] of requests.entries()) {
        const answer = await exchange(requestText(request, port))
        if (!answer.startsWith(`HTTP/1.1 ${request.status}`)) throw new Error(answer)
        counts[index] += 1
        if (recordsTimes) moments.push(performance.timeOrigin + performance.now())
      }
    }
  }
  await Promise.all(connectionsTo[port].map(keepSending))
  return { counts, moments, elapsedMs: performance.now() - begin }
}

/** A connection, as a function that sends a request and resolves to the whole answer. */
async function open(port, tls) {
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
    delete connectionsTo[port]
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

const READ_PATH = '/orders/17'

/** Makes the proofs of a turn before it, so that the load has no more to do than without. */
function proveAhead(pool, count) {
  const tokens = pools[pool]
  if (tokens[0].key === undefined) return
  const request = { method: 'GET', url: `http://orders${READ_PATH}` }
  proved[pool] = Array.from({ length: count }, (_, index) => {
    const { token, key } = tokens[index % tokens.length]
    return `DPoP ${token}\r\nDPoP: ${createProof(key, token, request)}`
  })
}

function nextAuthorization(pool, port) {
  if (proved[pool] === undefined) return `Bearer ${nextToken(pool, port)}`
  const next = proved[pool].pop()
  if (next === undefined) throw new Error('there are more requests than proofs')
  return next
}

function nextToken(pool, port) {
  const cursor = `${pool} ${port}`
  const at = cursors[cursor] ?? 0
  cursors[cursor] = (at + 1) % pools[pool].length
  return pools[pool][at]
}

/** One of a few keys of this port. */
function nextReplayed(port) {
  const cursor = `replay ${port}`
  const at = cursors[cursor] ?? 0
  cursors[cursor] = (at + 1) % REPLAYED_KEYS
  return `replay-${port}-${at}`
}

const ORDER = JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' })
const ORDER_HEAD = `Content-Type: application/json\r\nContent-Length: ${ORDER.length}\r\n`

function requestText({ kind, pool }, port) {
  const common = `Host: orders\r\nAuthorization: ${nextAuthorization(pool, port)}\r\n`
  if (kind === 'read') return `GET ${READ_PATH} HTTP/1.1\r\n${common}\r\n`
  const key = kind === 'replay' ? nextReplayed(port) : randomUUID()
  return `POST /orders HTTP/1.1\r\n${common}Idempotency-Key: ${key}\r\n${ORDER_HEAD}\r\n${ORDER}`
}

process.on('message', async (question) => {
  if (question.pools) {
    Object.assign(pools, question.pools)
    process.send({ isReady: true })
    return
  }
  process.send(await takeTurn(question.turn).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
