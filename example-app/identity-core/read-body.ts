import type { IncomingMessage } from 'node:http'

/** The body as text, or `undefined` when it is too large. */
export async function readBody(
  request: IncomingMessage,
  largestBytes = Number.POSITIVE_INFINITY,
): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  // The request must outlive the loop, or there is no connection left for the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += chunk.length
    if (bytes > largestBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
