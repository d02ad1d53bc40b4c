/*
 * A caller: `fetch` and `serviceFetch` by turns of some calls, one call after the other, each until its body is read.
 * Asked over IPC with `{ build, url, token, kind }`; answers with `{ plain, ours }`, the microseconds of processor time
 * for a call of each turn.
 */
import { importEntry } from './apps/handlers.js'

const CALLS_PER_TURN = 25
const WARM_UP_TURNS = 60
const TURNS = 80

const WRITE = {
  method: 'POST',
  body: JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' }),
  headers: { 'content-type': 'application/json', 'idempotency-key': 'order-17' },
}

async function takeTurns({ build, url, token, kind }) {
  const { serviceFetch } = await importEntry(build, './client')
  const call = serviceFetch({ token: async () => token }, { origins: [new URL(url).origin] })
  const request = kind === 'read' ? {} : WRITE
  const withToken = { ...request.headers, authorization: `Bearer ${token}` }
  const contenders = {
    plain: () => fetch(url, { ...request, headers: withToken }),
    ours: () => call(url, request),
  }
  const costs = { plain: [], ours: [] }
  for (let turn = -WARM_UP_TURNS; turn < TURNS; turn += 1) {
    // Whoever comes first in a turn may find the caches colder.
    const order = turn % 2 === 0 ? ['plain', 'ours'] : ['ours', 'plain']
    for (const who of order) {
      const cost = await costOfTurn(contenders[who])
      if (turn >= 0) costs[who].push(cost)
    }
  }
  return costs
}

async function costOfTurn(send) {
  const before = process.cpuUsage()
  for (let call = 0; call < CALLS_PER_TURN; call += 1) {
    const response = await send()
    await response.json()
    if (!response.ok) throw new Error(`a call was answered ${response.status}`)
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS_PER_TURN
}

process.on('message', async (question) => {
  process.send(await takeTurns(question).catch((error) => ({ fault: String(error) })))
})
process.on('disconnect', () => process.exit())
