/*
 * A caller: `fetch`, `serviceFetch` and `fetchByHand` by turns of some calls, one call after the other, each
 * until its body is read. Asked over IPC with `{ build, url, token, kind, turns }`; answers with milliseconds of each
 * call, and microseconds of processor time for a call of each turn.
 */
import { importEntry } from './build.js'

const CALLS_PER_TURN = 25
const WARM_UP_TURNS = 120

const ORDER = JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' })

function requestOf(kind) {
  if (kind === 'read') return { headers: {} }
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'order-17' }
  return { method: 'POST', body: ORDER, headers }
}

/** The least that does a part of the job: it has a time limit, and an answer that is cut off is an error. */
async function fetchByHand(url, init) {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) })
  return new Response(await response.arrayBuffer(), response)
}

async function takeTurns({ build, url, token, kind, turns }) {
  const { serviceFetch } = await importEntry(build, './client')
  const source = { token: async () => token }
  const call = serviceFetch(source, { origins: [new URL(url).origin] })
  const request = requestOf(kind)
  const withToken = { ...request.headers, authorization: `Bearer ${token}` }
  const contenders = [
    () => fetch(url, { ...request, headers: withToken }),
    () => call(url, request),
    () => fetchByHand(url, { ...request, headers: withToken }),
  ]
  const times = contenders.map(() => [])
  const cpu = contenders.map(() => [])
  for (let turn = -WARM_UP_TURNS; turn < turns; turn += 1) {
    // Whoever comes first in a turn may find the caches colder.
    const order = [...contenders.keys()]
    if (turn % 2 !== 0) order.reverse()
    for (const index of order) {
      const before = process.cpuUsage()
      for (let call = 0; call < CALLS_PER_TURN; call += 1) {
        const start = performance.now()
        const response = await contenders[index]()
        await response.json()
        if (turn >= 0) times[index].push(performance.now() - start)
        if (!response.ok) throw new Error(`a call was answered ${response.status}`)
      }
      const { user, system } = process.cpuUsage(before)
      if (turn >= 0) cpu[index].push((user + system) / CALLS_PER_TURN)
    }
  }
  return { times, cpu }
}

process.on('message', async (question) => {
  process.send(await takeTurns(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
