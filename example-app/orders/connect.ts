import { Pool } from 'pg'
import { StartError } from '../start-error.js'

const CONNECT_MS = 5000

/** In place of Postgres's own messages, which name users, databases and hosts. */
const EXPLAINED: Readonly<Record<string, string>> = {
  '28000': 'this user may not log in',
  '28P01': 'wrong user or password',
  '3D000': 'there is no such database',
  '42501': 'this user lacks the right',
  '42P01': 'a table is missing; npm run migrate makes it',
}

/**
 * A pool of connections, of which one has been tried.
 * @throws {StartError} when the address is malformed, or nobody serves there
 */
export async function connect(databaseUrl: string): Promise<Pool> {
  assertAddress(databaseUrl)
  const pool = new Pool({ connectionString: databaseUrl, connectionTimeoutMillis: CONNECT_MS })
  // The query that needs the connection fails, too.
  pool.on('error', () => undefined)
  try {
    await pool.query('select')
    return pool
  } catch (error) {
    await pool.end()
    throw explained(error)
  }
}

/** What a client or the server complains of, without quoting what it was given. */
export function explained(error: unknown): StartError {
  if (error instanceof StartError) return error
  const { code } = Object(error) as { code?: unknown }
  if (typeof code !== 'string') return new StartError('Postgres is unreachable')
  const isOfServer = /^[0-9A-Z]{5}$/.test(code)
  if (!isOfServer) return new StartError(`Postgres is unreachable (${code})`)
  return new StartError(`Postgres refuses: ${EXPLAINED[code] ?? 'look up its code'} (${code})`)
}

/** Never quotes the address: it may hold a password. */
function assertAddress(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPostgres = /^postgres(ql)?:$/.test(url?.protocol ?? '')
  if (url && isPostgres && url.hostname !== '' && isDecodable(text)) return
  throw new StartError('DATABASE_URL must be an address such as postgres://localhost:5432/orders')
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
