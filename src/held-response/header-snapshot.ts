import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'

type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** The headers that a response is about to be sent with, `writeHead`'s own ones over the others. */
export function snapshotHeaders(response: ServerResponse, ofWriteHead: unknown): HeaderPairs {
  const others = Object.entries(response.getHeaders())
  if (ofWriteHead === undefined) return inPairs(others)
  if (others.length === 0) return inPairs(pairsOf(ofWriteHead))
  const isList = Array.isArray(ofWriteHead)
  if (isList) return inPairs(Object.entries(rehearse(response, others, ofWriteHead)))
  const headers = new Map<string, unknown>(others)
  for (const [name, value] of pairsOf(ofWriteHead)) headers.set(name.toLowerCase(), value)
  return inPairs([...headers])
}

/** Whether names that a list repeats add up or replace each other differs from Node to Node. */
function rehearse(
  { req }: ServerResponse,
  others: readonly [string, OutgoingHttpHeader | undefined][],
  list: OutgoingHttpHeader[],
): OutgoingHttpHeaders {
  const scratch = new ServerResponse(req)
  for (const [name, value] of others) if (value !== undefined) scratch.setHeader(name, value)
  return scratch.writeHead(200, list).getHeaders()
}

/** Server-sent events are meant to arrive as they happen. */
export const isEventStream = (headers: HeaderPairs): boolean =>
  headers.some(
    ([name, value]) => name === 'content-type' && /^\s*text\/event-stream\s*(;|$)/i.test(value),
  )

function inPairs(headers: readonly (readonly [string, unknown])[]): HeaderPairs {
  const pairs: (readonly [string, string])[] = []
  for (const [name, values] of headers) {
    const lowerCase = name.toLowerCase()
    if (Array.isArray(values)) for (const value of values) pairs.push([lowerCase, String(value)])
    else pairs.push([lowerCase, String(values)])
  }
  return pairs
}

/** `writeHead` takes an object, a flat array of names and values, or an array of pairs. */
function pairsOf(headers: unknown): (readonly [string, unknown])[] {
  if (!Array.isArray(headers)) {
    const entries = Object.entries((headers ?? {}) as OutgoingHttpHeaders)
    return entries.filter(([, value]) => value !== undefined)
  }
  if (Array.isArray(headers[0])) return headers.map(([name, value]) => [String(name), value])
  const pairs: [string, unknown][] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    pairs.push([String(headers[index]), headers[index + 1]])
  }
  return pairs
}
