/** A message of the Postgres protocol (version 3), with its head. */
export interface WireMessage {
  /** One letter; empty for a startup message, an encryption request, its reply, and a cancel request. */
  readonly type: string
  readonly bytes: Buffer
}

export interface MessageSplitter {
  /** The messages that this chunk completes. */
  push(chunk: Buffer): WireMessage[]
  /** Announces that the next byte is a whole message: the reply to an encryption request. */
  expectByte(): void
}

const LENGTH_BYTES = 4
const TYPED_HEAD_BYTES = 1 + LENGTH_BYTES
const REQUESTS_FOR_ENCRYPTION = [80_877_103, 80_877_104]
const START_MAJOR = 3

/** Makes a message with its head. */
export function messageOf(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(TYPED_HEAD_BYTES)
  head.write(type, 'latin1')
  head.writeInt32BE(body.length + LENGTH_BYTES, 1)
  return Buffer.concat([head, body])
}

/** Splits the bytes from one side into messages. */
export function splitMessages(sender: 'client' | 'server'): MessageSplitter {
  let rest: Buffer = Buffer.alloc(0)
  let isTyped = sender === 'server'
  let expectsByte = false

  function take(): WireMessage | undefined {
    if (expectsByte && rest.length > 0) {
      expectsByte = false
      return { type: '', bytes: rest.subarray(0, 1) }
    }
    const head = isTyped ? TYPED_HEAD_BYTES : LENGTH_BYTES
    if (rest.length < head) return undefined
    const length = rest.readInt32BE(head - LENGTH_BYTES) + head - LENGTH_BYTES
    if (rest.length < length) return undefined
    const bytes = rest.subarray(0, length)
    const type = isTyped ? bytes.toString('latin1', 0, 1) : ''
    if (!isTyped) isTyped = bytes.readInt16BE(LENGTH_BYTES) === START_MAJOR
    return { type, bytes }
  }

  return {
    push(chunk) {
      rest = Buffer.concat([rest, chunk])
      const messages: WireMessage[] = []
      for (let message = take(); message !== undefined; message = take()) {
        messages.push(message)
        rest = rest.subarray(message.bytes.length)
      }
      return messages
    },
    expectByte() {
      expectsByte = true
    },
  }
}

export function asksForEncryption({ type, bytes }: WireMessage): boolean {
  return type === '' && REQUESTS_FOR_ENCRYPTION.includes(bytes.readInt32BE(LENGTH_BYTES))
}

/** Returns the tag of a completed command, such as `COMMIT` or `INSERT 0 1`. */
export function commandTag({ type, bytes }: WireMessage): string | undefined {
  return type === 'C' ? textAt(bytes, TYPED_HEAD_BYTES) : undefined
}

/** Returns a function that tells which statement a client's message runs; `undefined` if none. */
export function followStatements(): (message: WireMessage) => string | undefined {
  const prepared = new Map<string, string>()
  const bound = new Map<string, string>()
  return ({ type, bytes }) => {
    const first = (): string => textAt(bytes, TYPED_HEAD_BYTES)
    const second = (): string => textAt(bytes, TYPED_HEAD_BYTES + Buffer.byteLength(first()) + 1)
    if (type === 'P') prepared.set(first(), oneLine(second()))
    if (type === 'B') bound.set(first(), prepared.get(second()) ?? '')
    if (type === 'E') return bound.get(first()) ?? ''
    if (type === 'Q') return oneLine(first())
    return undefined
  }
}

const textAt = (bytes: Buffer, start: number): string =>
  bytes.toString('utf8', start, bytes.indexOf(0, start))

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()
