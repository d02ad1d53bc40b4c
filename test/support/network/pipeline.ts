import { once } from 'node:events'
import { connect } from 'node:net'

/** Large enough for few round trips, small enough for what a server accepts at once. */
const BATCH = 100

/**
 * Sends `count` requests over one connection, a hundred at a time without waiting for their answers,
 * and counts the answers by status.
 */
export async function pipeline(
  port: number,
  count: number,
  tokenOf: (index: number) => string,
): Promise<ReadonlyMap<number, number>> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay(true)
  await once(socket, 'connect')
  const statuses = new Map<number, number>()
  let text = ''
  let answered = 0
  let hungUp = false
  let wake = (): void => {}
  socket.on('data', (chunk: string) => {
    text += chunk
    // A status line may follow a body without a line break. An incomplete last line waits for the next chunk.
    const complete = text.lastIndexOf('\n') + 1
    for (const [, status] of text.slice(0, complete).matchAll(/HTTP\/1\.1 (\d{3})/g)) {
      statuses.set(Number(status), (statuses.get(Number(status)) ?? 0) + 1)
      answered += 1
    }
    text = text.slice(complete)
    wake()
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    hungUp = true
    wake()
  })

  for (let sent = 0; sent < count; ) {
    const size = Math.min(BATCH, count - sent)
    const requests = Array.from({ length: size }, (_, index) => {
      const head = [
        'GET / HTTP/1.1',
        'Host: receiver',
        `Authorization: Bearer ${tokenOf(sent + index)}`,
      ]
      return `${head.join('\r\n')}\r\n\r\n`
    })
    sent += size
    socket.write(requests.join(''))
    while (answered < sent) {
      if (hungUp) throw new Error('the receiver hung up')
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  socket.destroy()
  return statuses
}
