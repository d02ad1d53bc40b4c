import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ports that the kernel assigns, and below those of `launchServer`, so that nobody takes the port
// while its listener is down. Above 6697 and below 10080, which `fetch` refuses to call (Fetch Standard, port
// blocking). Each worker has a separate range.
const LOWEST_PORT = 6_700
const PORTS_OF_A_WORKER = 160
const WORKERS = 19
const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS

// At random, so that a client that an earlier test left behind does not reach the server of a later test.
let next = Math.floor(Math.random() * PORTS_OF_A_WORKER)

/** Returns a port of 127.0.0.1 for a listener that starts later, or that stops and starts again. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PORTS_OF_A_WORKER; tried += 1) {
    next = (next + 1) % PORTS_OF_A_WORKER
    const port = LOWEST_PORT + worker * PORTS_OF_A_WORKER + next
    if (await isFree(port)) return port
  }
  throw new Error(`all ports of worker ${worker} are taken`)
}

/** Returns an origin on 127.0.0.1 that refuses connections. */
export const refusingOrigin = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false
    throw error
  }
  await once(server.close(), 'close')
  return true
}
