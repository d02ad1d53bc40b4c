/** Superuser of every cluster of ours; nobody is asked for a password. */
export const SUPERUSER = 'postgres'

/** Where Postgres, or what stands before it, is reached. */
export interface PostgresAddress {
  readonly host: string
  readonly port: number
  /** Of the superuser, on the database `postgres`. */
  readonly url: string
  /** Without a role, the superuser's; no role is asked for its password. */
  urlFor(database: string, role?: string, password?: string): string
}

export function postgresAddress(port: number, host = '127.0.0.1'): PostgresAddress {
  const urlFor: PostgresAddress['urlFor'] = (database, role = SUPERUSER, password) => {
    const credentials = [role, ...(password === undefined ? [] : [password])]
    return `postgres://${credentials.map(encodeURIComponent).join(':')}@${host}:${port}/${database}`
  }
  return { host, port, url: urlFor('postgres'), urlFor }
}
