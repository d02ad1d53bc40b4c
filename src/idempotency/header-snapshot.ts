import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'

type HeaderPairs = readonly (readonly [name: string, value: string])[]

/** The headers that a response is about to be sent with, `writeHead`'s own ones over the others. */
export function snapshotHeaders(response: ServerResponse, ofWriteHead: unknown): HeaderPairs {
  const headers = new Map<string, string[]>()
  const set = (name: string, value: unknown): void => {
    headers.set(name.toLowerCase(), valuesOf(value))
  }
  for (const [name, value] of Object.entries(response.getHeaders())) set(name, value)
  const given = pairsOf(ofWriteHead)
  for (const [name] of given) headers.delete(name.toLowerCase())
  for (const [name, value] of given) {
    set(name, [...(headers.get(name.toLowerCase()) ?? []), ...valuesOf(value)])
  }
  return [...headers].flatMap(([name, values]) => values.map((value) => [name, value] as const))
}

/** Server-sent events are meant to arrive as they happen. */
export const isEventStream = (headers: HeaderPairs): boolean =>
  headers.some(
    ([name, value]) => name === 'content-type' && /^\s*text\/event-stream\b/i.test(value),
  )

const valuesOf = (value: unknown): string[] => [value].flat().map(String)

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
