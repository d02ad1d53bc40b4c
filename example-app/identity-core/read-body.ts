import type { IncomingMessage } from 'node:http'

/** A mint request is a kilobyte; this leaves room for long lists of permissions. */
const LARGEST_BODY_BYTES = 256 * 1024

/** The body as text, or `undefined` when it is too large. */
export async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  // The request must outlive the loop, or there is no connection left for the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes > LARGEST_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
