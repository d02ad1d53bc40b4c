/** A node of a cluster: a URL, or host and port. */
export type ClusterNodeTarget = string | { readonly host: string; readonly port?: number | null }

/** The location of Redis; `options` are the other members of the file, as ioredis names them. */
export type RedisTarget = { readonly options: object } & (
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'cluster'; readonly nodes: readonly ClusterNodeTarget[] }
  | { readonly kind: 'options' }
)
