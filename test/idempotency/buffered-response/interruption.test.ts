import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { watchInterruption } from '../../../src/idempotency/buffered-response/client-connection.js'

/** What is asked of a response here: it takes pipes, and closes. */
function watched() {
  const response = new Writable({ write: (_chunk, _encoding, done) => done() })
  const dropped = vi.fn()
  watchInterruption({
    response: response as unknown as ServerResponse,
    deferDestroy: () => false,
    onInterrupt: dropped,
    onDisconnect() {},
  })
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate)
  }
  return { response, dropped, settle }
}

describe('watchInterruption', () => {
  it('tells when the response closes under a pipe', async () => {
    const { response, dropped, settle } = watched()
    const source = new PassThrough()
    source.pipe(response)
    source.write('some')
    response.destroy()
    await once(response, 'close')
    await settle()
    expect(dropped).toHaveBeenCalled()
  })

  it('tells when what was piped into a closed response is destroyed', async () => {
    const { response, dropped, settle } = watched()
    response.destroy()
    await once(response, 'close')
    const source = new PassThrough()
    response.emit('pipe', source)
    await settle()
    expect(dropped).not.toHaveBeenCalled()
    source.destroy()
    await settle()
    expect(dropped).toHaveBeenCalled()
  })

  it('does not tell of what was never piped, or had come to its end', async () => {
    for (const pipe of [false, true]) {
      const { response, dropped, settle } = watched()
      const source = new PassThrough()
      if (pipe) {
        source.pipe(response, { end: false })
        source.end('whole')
        await once(source, 'end')
      }
      response.destroy()
      await once(response, 'close')
      await settle()
      expect(dropped).not.toHaveBeenCalled()
    }
  })

  it('does not tell of what the handler itself has let go while the caller was there', async () => {
    const { response, dropped, settle } = watched()
    const source = new PassThrough()
    source.pipe(response)
    source.unpipe(response)
    response.destroy()
    await once(response, 'close')
    await settle()
    expect(dropped).not.toHaveBeenCalled()
  })
})
