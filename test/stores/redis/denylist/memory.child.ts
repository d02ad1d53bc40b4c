/** Tells how many bytes a receiver takes for the list that there is, and what it costs to ask. */
import { redisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'

const [port, issuer = ''] = process.argv.slice(2)
const collect = globalThis.gc as () => void

async function settledHeap(): Promise<number> {
  for (let round = 0; round < 5; round++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return process.memoryUsage().heapUsed
}

const denylist = redisDenylist(new Redis({ port: Number(port), lazyConnect: true }))
await denylist.ready()
const before = await settledHeap()
process.send?.({ entries: denylist.health().entries })
process.once('message', async () => {
  while (denylist.health().entries < 10_000) await new Promise((resolve) => setTimeout(resolve, 50))
  const bytes = (await settledHeap()) - before
  process.send?.({ bytes, callers: denylist.lists(issuer)?.callers.size })
})
