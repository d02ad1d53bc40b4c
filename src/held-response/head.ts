import { type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from 'node:http'

type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** Status and headers as a response is sent with them. */
export interface Head {
  readonly status: number
  readonly headers: HeaderPairs
}

/** The head that `writeHead` is called for: its own headers stand before the response's. */
export function headOf(response: ServerResponse, [status, reason, given]: unknown[]): Head {
  const ofWriteHead = typeof reason === 'string' ? given : (given ?? reason)
  // Node makes an integer of the status likewise.
  return { status: Number(status) | 0, headers: snapshotHeaders(response, ofWriteHead) }
}

/** Whether a response with this status has no body, whatever its handler writes. */
export const isBodyless = (status: number): boolean =>
  status === 204 || status === 304 || status < 200

/** The `Content-Length` of a head, where it has one. */
export function lengthIn({ headers }: Head): number | undefined {
  const header = headers.find(([name]) => name === 'content-length')
  return header === undefined ? undefined : Number(header[1])
}

function snapshotHeaders(response: ServerResponse, ofWriteHead: unknown): HeaderPairs {
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
export const isEventStream = ({ headers }: Head): boolean =>
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
