import { Cluster, Redis } from 'ioredis'

interface Address {
  readonly host: string
  readonly port: number
}

/** Where a Redis is found. It passes between processes as JSON. */
export type ServerPlace =
  | Address
  | { readonly name: string; readonly sentinels: readonly Address[] }
  | { readonly nodes: readonly Address[] }

export function connectTo(place: ServerPlace): Redis | Cluster {
  const client = clientOf(place)
  client.on('error', () => {})
  return client
}

function clientOf(place: ServerPlace): Redis | Cluster {
  if ('nodes' in place) return new Cluster([...place.nodes], { lazyConnect: true })
  if ('sentinels' in place) {
    return new Redis({ ...place, sentinels: [...place.sentinels], lazyConnect: true })
  }
  return new Redis({ ...place, lazyConnect: true })
}
