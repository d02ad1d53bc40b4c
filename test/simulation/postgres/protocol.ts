/** The messages of Postgres, as far as pg sends and reads them ("Frontend/Backend Protocol"). */

export interface Statement {
  readonly text: string
  readonly values: readonly (string | null)[]
}

/** What a client asks for: a session, a batch of statements, or the end. */
export type Request = 'startup' | 'terminate' | Batch

export interface Batch {
  readonly statements: readonly Statement[]
  /** It came as `Parse`, `Bind` and so on up to a `Sync`, not as a `Query`. */
  readonly isExtended: boolean
}

/** What a statement returns: at most one column, of texts. */
export interface Result {
  /** The command tag. */
  readonly command: string
  readonly column?: string
  readonly values?: readonly (string | null)[]
}

/** An error of the server. */
export class PgError extends Error {
  readonly code: string

  constructor(code: string, message = code) {
    super(message)
    this.code = code
  }
}

/** Cuts what a client sends into requests. pg writes whole messages. */
export class RequestReader {
  #hasStarted = false
  #batch: Statement[] = [];

  *read(data: Buffer): Generator<Request> {
    for (let at = 0; at < data.length; ) {
      // The first message has no type.
      const head = this.#hasStarted ? 1 : 0
      const type = data.toString('latin1', at, at + head)
      const end = at + head + data.readInt32BE(at + head)
      yield* this.#request(type, data.subarray(at + head + 4, end))
      this.#hasStarted = true
      at = end
    }
  }

  *#request(type: string, body: Buffer): Generator<Request> {
    switch (type) {
      case '':
        yield 'startup'
        return
      case 'X':
        yield 'terminate'
        return
      case 'Q': {
        const statements = textAt(body, 0).split(/;\s/)
        yield { statements: statements.map((text) => ({ text, values: [] })), isExtended: false }
        return
      }
      case 'P':
        this.#batch.push({ text: textAt(body, 1), values: [] })
        return
      case 'B':
        this.#batch.push({ text: this.#batch.pop()?.text ?? '', values: boundValues(body) })
        return
      case 'S':
        yield { statements: this.#batch.splice(0), isExtended: true }
    }
  }
}

const textAt = (body: Buffer, from: number): string =>
  body.toString('utf8', from, body.indexOf(0, from))

/** The parameters of a `Bind` of the unnamed statement; all are texts. */
function boundValues(body: Buffer): (string | null)[] {
  let at = 2 + 2 + 2 * body.readInt16BE(2)
  const count = body.readInt16BE(at)
  at += 2
  return Array.from({ length: count }, () => {
    const size = body.readInt32BE(at)
    at += 4 + Math.max(0, size)
    return size < 0 ? null : body.toString('utf8', at - size, at)
  })
}

const TEXT_OID = 25

const int16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

const message = (type: string, ...parts: readonly (Buffer | string)[]): Buffer => {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)))
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body])
}

export const authenticated = (): Buffer => message('R', int32(0))

/** `I` is idle, `T` in a transaction, `E` in one that has failed. */
export const ready = (status: 'I' | 'T' | 'E'): Buffer => message('Z', status)

export function resultOf(
  { command, column, values = [] }: Result,
  { isExtended }: { readonly isExtended: boolean },
): Buffer {
  const isBound = isExtended ? [message('1'), message('2')] : []
  const shape = [int32(0), int16(0), int32(TEXT_OID), int16(-1), int32(-1), int16(0)]
  const columns = column === undefined ? [] : [message('T', int16(1), `${column}\0`, ...shape)]
  const rows = values.map((value) =>
    value === null
      ? message('D', int16(1), int32(-1))
      : message('D', int16(1), int32(Buffer.byteLength(value)), value),
  )
  const tag = column === undefined ? command : `${command} ${values.length}`
  return Buffer.concat([...isBound, ...columns, ...rows, message('C', `${tag}\0`)])
}

export const failure = ({ code, message: text }: PgError, severity = 'ERROR'): Buffer =>
  message('E', `S${severity}\0V${severity}\0C${code}\0M${text}\0\0`)
