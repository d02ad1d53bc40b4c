import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ports that the kernel hands out by itself, and below those of the servers of tests: nobody
// takes a port whose listener is away for a while. Above 6697, as `fetch` calls none of some ports up to
// there (Fetch Standard, port blocking). Each worker has ports of its own.
const LOWEST_PORT = 6_700
const PORTS_OF_A_WORKER = 160
const WORKERS = 19
const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS

// At random: what an earlier test has left behind does not find the next one at its address.
let next = Math.floor(Math.random() * PORTS_OF_A_WORKER)

/** A port of 127.0.0.1 for a listener that comes later, or that goes and comes back. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PORTS_OF_A_WORKER; tried += 1) {
    next = (next + 1) % PORTS_OF_A_WORKER
    const port = LOWEST_PORT + worker * PORTS_OF_A_WORKER + next
    if (await isFree(port)) return port
  }
  throw new Error(`all ports of worker ${worker} are taken`)
}

/** An origin on 127.0.0.1 where connections are refused. */
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
