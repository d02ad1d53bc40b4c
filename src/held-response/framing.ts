import { type Capture, hasNoBody } from './capture-state.js'

/**
 * Of a response that comes in one piece Node would tell the length by itself. Returns whether it was
 * told here.
 */
export function announceLength(capture: Capture, length: number): boolean {
  const { response } = capture
  if (capture.head !== undefined || hasNoBody(capture)) return false
  const framing = ['content-length', 'transfer-encoding', 'trailer']
  if (framing.some((name) => response.hasHeader(name))) return false
  response.setHeader('Content-Length', length)
  return true
}

/** Node sends such a text in one piece with the head: then both must mean the same octets in it. */
export const isSentWithHead = (
  { head }: Capture,
  chunk: unknown,
  encoding: BufferEncoding | undefined,
): boolean =>
  typeof chunk === 'string' &&
  chunk !== '' &&
  (encoding === undefined || encoding === 'utf8') &&
  head?.headers.every(([, value]) => ASCII.test(value)) === true

const ASCII = /^[\t -~]*$/
