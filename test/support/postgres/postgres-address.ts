/** The superuser of every test cluster; no role needs a password. */
export const SUPERUSER = 'postgres'

/** The address of a Postgres, or of a proxy or pooler in front of it. */
export interface PostgresAddress {
  readonly host: string
  readonly port: number
  /** The URL for the superuser and the database `postgres`. */
  readonly url: string
  /** The URL for a database and a role. Default: the superuser. */
  urlFor(database: string, role?: string, password?: string): string
}

export function postgresAddress(port: number, host = '127.0.0.1'): PostgresAddress {
  const urlFor: PostgresAddress['urlFor'] = (database, role = SUPERUSER, password) => {
    const credentials = [role, ...(password === undefined ? [] : [password])]
    return `postgres://${credentials.map(encodeURIComponent).join(':')}@${host}:${port}/${database}`
  }
  return { host, port, url: urlFor('postgres'), urlFor }
}
