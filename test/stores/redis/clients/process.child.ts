/** Uses stores and denylists on clients of the library that is named, and closes them. */
import { randomUUID } from 'node:crypto'
import { type RedisClientLike, redisDenylist, redisStore } from 'express-service-auth/redis'

const [library = '', ports = '{}'] = process.argv.slice(2)
const host = '127.0.0.1'
const { Redis, Cluster, createClient, createCluster } = await import(library)

const clientOf = (name: string, port: number): RedisClientLike => {
  if (name === 'sentinel')
    return new Redis({ sentinels: [{ host, port }], name: 'orders', lazyConnect: true })
  if (name !== 'cluster')
    return (
      createClient?.({ socket: { host, port } }) ?? new Redis({ host, port, lazyConnect: true })
    )
  return (
    createCluster?.({ rootNodes: [{ socket: { host, port } }] }) ??
    new Cluster([{ host, port }], { lazyConnect: true })
  )
}

const request = {
  recordId: randomUUID(),
  owner: randomUUID(),
  fingerprint: 'fingerprint',
  leaseMs: 900_000,
  retentionMs: 900_000,
  rerunAbandoned: false,
}
const used: Record<string, boolean[]> = {}
const uses = Object.entries<number>(JSON.parse(ports)).map(async ([name, port]) => {
  const client = clientOf(name, port)
  const isReached = ['serving', 'cluster'].includes(name)
  const store = redisStore(client, { timeoutMs: isReached ? 10_000 : 100 })
  const denylist = redisDenylist(client)
  // One that may reach a server that hangs is taken back until the store is closed.
  const work = [store.reserve(request), denylist.ready()]
  const results = await Promise.allSettled(work)
  used[name] = results.map(({ status }) => status === 'fulfilled')
  return () => {
    store.close()
    denylist.close()
  }
})
for (const close of await Promise.all(uses)) close()
console.log(JSON.stringify(used))
const { idle } = performance.eventLoopUtilization()
process.on('exit', () => console.log(performance.eventLoopUtilization().idle - idle))
