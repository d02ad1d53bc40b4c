import { connect } from 'node:net'

const REPLY_TIMEOUT_MS = 30_000

/** Sends one command on a new connection; resolves with the text of the reply. */
export async function sendCommand(
  { host, port }: { readonly host: string; readonly port: number },
  ...words: string[]
): Promise<string> {
  const socket = connect({ host, port })
  socket.setTimeout(REPLY_TIMEOUT_MS, () => socket.destroy(new Error('Redis did not reply')))
  socket.write(`*${words.length}\r\n${words.map(toBulkString).join('')}`)
  let received = ''
  try {
    for await (const chunk of socket.setEncoding('utf8')) {
      received += chunk
      const reply = readReply(received)
      if (reply !== undefined) return reply
    }
  } finally {
    socket.destroy()
  }
  throw new Error(`Redis closed the connection without a reply to ${words[0]}`)
}

function toBulkString(word: string): string {
  return `$${Buffer.byteLength(word)}\r\n${word}\r\n`
}

/** Returns the text of a status, integer or bulk reply; `undefined` while the reply is incomplete. */
function readReply(received: string): string | undefined {
  const lineEnd = received.indexOf('\r\n')
  if (lineEnd < 0) return undefined
  const head = received.slice(1, lineEnd)
  if (received.startsWith('-')) throw new Error(`Redis answered ${head}`)
  if (!received.startsWith('$')) return head
  const body = received.slice(lineEnd + 2)
  const expected = Number(head)
  if (expected < 0) return ''
  return Buffer.byteLength(body) >= expected + 2 ? body.slice(0, -2) : undefined
}
