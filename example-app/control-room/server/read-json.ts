import type { IncomingMessage } from 'node:http'
import type { Refusal } from './gate.js'

const MAX_BODY_BYTES = 64 * 1024

const JSON_TYPE = /^application\/json(?:\s*;|$)/i

/** Reads a body of JSON, or says why it is none. Rejects when the connection breaks. */
export async function readJson(
  request: IncomingMessage,
): Promise<{ readonly value: unknown } | { readonly refusal: Refusal }> {
  if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) {
    return { refusal: { status: 415, text: 'The body must be JSON.' } }
  }
  const text = await readText(request)
  if (text === undefined) return { refusal: { status: 413, text: 'The body is too large.' } }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { refusal: { status: 400, text: 'The body is not JSON.' } }
  }
}

/** The body as text; `undefined` once it is more than a body may be. */
async function readText(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    // The rest is read and forgotten: who is still sending would not see an answer before.
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk)
  }
  return bytes > MAX_BODY_BYTES ? undefined : Buffer.concat(chunks).toString('utf8')
}
