/*
 * A caller: `fetch` and `serviceFetch` by turns, one call after the other, each until its body is
 * read. Asked over IPC with `{ build, url, token, kind, calls }`; answers with milliseconds of each.
 */
import { importEntry } from './build.js'

const WARM_UP_CALLS = 3000

const ORDER = JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' })

function requestOf(kind) {
  if (kind === 'read') return { headers: {} }
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'order-17' }
  return { method: 'POST', body: ORDER, headers }
}

async function takeTurns({ build, url, token, kind, calls }) {
  const { serviceFetch } = await importEntry(build, './client')
  const source = { token: async () => token }
  const call = serviceFetch(source, { origins: [new URL(url).origin] })
  const request = requestOf(kind)
  const withToken = { ...request.headers, authorization: `Bearer ${token}` }
  const contenders = [
    () => fetch(url, { ...request, headers: withToken }),
    () => call(url, request),
  ]
  const times = contenders.map(() => [])
  for (let turn = -WARM_UP_CALLS; turn < calls; turn += 1) {
    // Whoever comes first in a turn may find the caches colder.
    const order = turn % 2 === 0 ? [0, 1] : [1, 0]
    for (const index of order) {
      const start = performance.now()
      const response = await contenders[index]()
      await response.json()
      if (turn >= 0) times[index].push(performance.now() - start)
      if (!response.ok) throw new Error(`a call was answered ${response.status}`)
    }
  }
  return { times }
}

process.on('message', async (question) => {
  process.send(await takeTurns(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
