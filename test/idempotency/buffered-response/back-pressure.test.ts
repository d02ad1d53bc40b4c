import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { launch } from '../../support/process/launch.js'
import { callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

const MIB = 1024 * 1024
const PROGRAM = new URL('back-pressure.child.ts', import.meta.url)

interface Greeting {
  readonly port: number
  readonly token: string
}

interface Report {
  readonly sent: number
  /** Bytes in buffers. */
  readonly held: number
}

describe('A pipe of 48 MiB', () => {
  it('waits for a caller that reads slowly, and its memory stays flat', async () => {
    const options = { nodeArgs: ['--expose-gc'] }
    const { child, greeting } = await launch<Greeting>(PROGRAM, options)
    const { port, token } = greeting
    const reports: Report[] = []
    child.on('message', (report: Report) => reports.push(report))
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
    expect(reports.at(-1)?.sent).toBeLessThan(24 * MIB)
    let received = 0
    socket.on('data', (chunk) => {
      received += chunk.length
    })
    socket.resume()
    await closed
    expect(received).toBeGreaterThan(48 * MIB)
    const held = reports.map((report) => report.held)
    expect(Math.max(...held) / MIB).toBeLessThan(5)
    child.disconnect()
    await once(child, 'exit')
  })
})
