/*
 * The load: keep-alive connections without pipelining, each sending its next request when the last
 * is answered. Raw sockets, because an HTTP client would need more of its core than the server of its
 * own. Asked over IPC: `{ pools }` hands over the tokens, `{ run }` loads a port for a while.
 */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const CONNECTIONS = 64
/** Not counted at the beginning of each run: connections are opened, caches come back. */
const RAMP_MS = 300

const pools = {}
/** Each server gets all tokens of a pool in turn, however the turns of others lie between. */
const cursors = {}

function tokensFor(port) {
  return (pool) => {
    const cursor = `${pool} ${port}`
    const at = cursors[cursor] ?? 0
    cursors[cursor] = (at + 1) % pools[pool].length
    return pools[pool][at]
  }
}

const ORDER = JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' })
const ORDER_HEAD = `Content-Type: application/json\r\nContent-Length: ${ORDER.length}\r\n`

function requestText(kind, token) {
  const common = `Host: orders\r\nAuthorization: Bearer ${token}\r\n`
  if (kind === 'read') return `GET /orders/17 HTTP/1.1\r\n${common}\r\n`
  return `POST /orders HTTP/1.1\r\n${common}Idempotency-Key: ${randomUUID()}\r\n${ORDER_HEAD}\r\n${ORDER}`
}

/** `turns`: what each connection sends in turn, `{ kind, pool, status }`. */
async function run({ port, turns, durationMs }) {
  const counts = turns.map(() => 0)
  let total = 0
  let isCounting = false
  let isOver = false
  let fault
  const nextToken = tokensFor(port)

  function openConnection() {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let turn = 0
    let pending = ''
    const send = () => {
      const { kind, pool } = turns[turn]
      socket.write(requestText(kind, nextToken(pool)), 'latin1')
    }
    socket.on('connect', send)
    socket.on('data', (chunk) => {
      pending += chunk.latin1Slice()
      if (!isWhole(pending)) return
      if (!pending.startsWith(`HTTP/1.1 ${turns[turn].status}`)) fault ??= pending
      pending = ''
      total += 1
      if (isCounting) counts[turn] += 1
      turn = (turn + 1) % turns.length
      if (isOver) socket.end()
      else send()
    })
    socket.on('error', (error) => {
      fault ??= String(error)
    })
    return new Promise((resolve) => socket.on('close', resolve))
  }

  const closed = Array.from({ length: CONNECTIONS }, openConnection)
  await sleep(RAMP_MS)
  isCounting = true
  const cpu = process.cpuUsage()
  const began = performance.now()
  await sleep(durationMs)
  isCounting = false
  const seconds = (performance.now() - began) / 1000
  const used = process.cpuUsage(cpu)
  isOver = true
  await Promise.all(closed)
  const perSecond = counts.map((count) => count / seconds)
  return { perSecond, total, busy: (used.user + used.system) / 1e6 / seconds, fault }
}

function isWhole(text) {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const at = text.indexOf('Content-Length: ')
  if (at === -1 || at > headEnd) throw new Error(`an answer without a length: ${text}`)
  return text.length >= headEnd + 4 + Number.parseInt(text.slice(at + 16, at + 26), 10)
}

process.on('message', async (question) => {
  if (question.pools) {
    Object.assign(pools, question.pools)
    process.send({ ready: true })
  } else process.send(await run(question.run))
})
process.on('disconnect', () => process.exit())
