/** What has come over the connection so far. */
export type AnswerSoFar =
  | { readonly state: 'begun' | 'malformed' }
  | { readonly state: 'whole'; readonly status: number; readonly isReplay: boolean }

const END_OF_HEAD = '\r\n\r\n'
const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) /
const LAST_CHUNK = /(?:^|\r\n)0\r\n\r\n$/

/** Whether the bytes are a whole answer; `isEnded` when no more will come. */
export function readAnswer(bytes: Buffer, isEnded: boolean): AnswerSoFar {
  const text = bytes.toString('latin1')
  const end = text.indexOf(END_OF_HEAD)
  if (end === -1) return { state: 'begun' }
  const head = text.slice(0, end)
  const status = Number(STATUS_LINE.exec(head)?.[1])
  if (!status) return { state: 'malformed' }
  const body = text.slice(end + END_OF_HEAD.length)
  if (!isWhole(head, body, isEnded)) return { state: 'begun' }
  return { state: 'whole', status, isReplay: headerOf(head, 'idempotent-replayed') === 'true' }
}

function isWhole(head: string, body: string, isEnded: boolean): boolean {
  const length = headerOf(head, 'content-length')
  if (length !== undefined) return body.length >= Number(length)
  if (headerOf(head, 'transfer-encoding') === 'chunked') return LAST_CHUNK.test(body)
  return isEnded
}

function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i').exec(head)?.[1]
}
