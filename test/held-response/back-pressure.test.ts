import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { callRaw, newKey } from '../idempotency/exchange.js'
import { VARIANTS } from '../idempotency/receiver.js'
import { until } from '../support/until.js'

const MIB = 1024 * 1024
const PROGRAM = fileURLToPath(new URL('back-pressure.child.ts', import.meta.url))

interface Report {
  readonly port?: number
  readonly token?: string
  readonly sent?: number
  /** Octets in buffers. */
  readonly held?: number
}

describe.each(VARIANTS)('A pipe of 100 MiB, $name', ({ name }) => {
  it('waits for a caller that reads slowly, and its memory stays flat', async () => {
    const child = fork(PROGRAM, [name], { execArgv: ['--expose-gc', '--import', 'tsx'] })
    const reports: Report[] = []
    child.on('message', (report: Report) => reports.push(report))
    await until('the receiver', async () => reports.length > 0)
    const { port = 0, token } = reports.shift() ?? {}
    // Its own token: the child has a key of its own.
    const headers = { connection: 'close', authorization: `Bearer ${token}` }
    const { socket, closed } = await callRaw(port, { key: newKey(), headers })
    socket.removeAllListeners('data').pause()
    let last = -1
    // Whatever the kernel buffers: at some point no more is asked of the source.
    await until('the source to stop', async () => {
      const isSame = reports.length > 0 && reports.length === last
      last = reports.length
      await new Promise((resolve) => setTimeout(resolve, 200))
      return isSame && reports.length === last
    })
    expect(reports.at(-1)?.sent).toBeLessThan(50 * MIB)
    let received = 0
    socket.on('data', (chunk) => {
      received += chunk.length
    })
    socket.resume()
    await closed
    expect(received).toBeGreaterThan(100 * MIB)
    const held = reports.map((report) => report.held ?? Number.POSITIVE_INFINITY)
    expect(Math.max(...held) / MIB).toBeLessThan(5)
    child.disconnect()
    await once(child, 'exit')
  })
})
