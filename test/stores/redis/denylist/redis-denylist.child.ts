/** Uses a denylist and closes it; the process must end. */
import { redisDenylist } from 'express-service-auth/redis'
import { Cluster, Redis } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'

const [state, port] = process.argv.slice(2)
const options = { port: Number(port), lazyConnect: true }
const MAKERS: Record<string, () => Redis | Cluster> = {
  'ioredis 5': () => new Redis5(options) as unknown as Redis,
  cluster: () => new Cluster([{ host: '127.0.0.1', port: Number(port) }], { lazyConnect: true }),
}
const redis = MAKERS[state as string]?.() ?? new Redis(options)
const denylist = redisDenylist(redis)

switch (state) {
  case 'never used':
    break
  case 'at once':
    denylist.lists('https://core.example')
    denylist.close()
    break
  case 'unreachable':
    await denylist.ready().catch((error: Error) => console.log(error.name))
    await denylist.entries().catch((error: Error) => console.log(error.name))
    denylist.close()
    break
  case 'desk':
    console.log((await denylist.entries()).length)
    denylist.close()
    break
  default:
    await denylist.ready()
    await denylist.receivers()
    denylist.close()
}
redis.disconnect()
console.log('left')
