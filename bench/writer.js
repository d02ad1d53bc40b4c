/*
 * A caller that writes through `serviceFetch`, with a token of its own for each write or with one that is
 * bound to its key. Asked over IPC with `{ durationMs }`; answers with how many writes it has made, and with
 * its processor time.
 */
import { importEntry } from './build.js'

const CONCURRENT = 16
const ORDER = JSON.stringify({ item: 'book', quantity: 2, note: 'leave it at the door' })
const HEADERS = { 'content-type': 'application/json' }

const { build, core, apiDomain, port, source } = JSON.parse(process.argv[2])
const { serviceFetch, tokenSource } = await importEntry(build, './client')
const tokens = tokenSource({
  core,
  apiDomain,
  claims: {
    aud: 'orders',
    sub: 'billing',
    source: 'microservice',
    token_type: 'service-access',
    permissions: ['orders:read', 'orders:write'],
  },
  ...source,
})
const origin = `http://127.0.0.1:${port}`
const call = serviceFetch(tokens, { origins: [origin] })

async function takeTurn(durationMs) {
  const end = performance.now() + durationMs
  let writes = 0
  const keepWriting = async () => {
    while (performance.now() < end) {
      const response = await call(`${origin}/orders`, {
        method: 'POST',
        headers: HEADERS,
        body: ORDER,
      })
      await response.arrayBuffer()
      if (response.status !== 201) throw new Error(`a write was answered ${response.status}`)
      writes += 1
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT }, keepWriting))
  return writes
}

process.on('message', async ({ durationMs = 0 }) => {
  try {
    const writes = await takeTurn(durationMs)
    const { user, system } = process.cpuUsage()
    process.send({ writes, cpuMicroseconds: user + system })
  } catch (error) {
    process.send({ fault: String(error.stack ?? error) })
  }
})
process.on('disconnect', () => process.exit())
