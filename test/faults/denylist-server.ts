import { Redis } from 'ioredis'

interface Address {
  readonly host: string
  readonly port: number
}

/** Where a Redis is found. It passes between processes as JSON. */
export type ServerPlace =
  | Address
  | { readonly name: string; readonly sentinels: readonly Address[] }

export function connectTo(place: ServerPlace): Redis {
  const found = 'sentinels' in place ? { ...place, sentinels: [...place.sentinels] } : place
  const client = new Redis({ ...found, lazyConnect: true })
  client.on('error', () => {})
  return client
}
