import { readFile } from 'node:fs/promises'
import { type IncomingMessage, request as send } from 'node:http'
import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import type { StandInCore } from '../support/core/stand-in-core.js'

export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [name: string]: Json
}

interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly key?: null
  readonly headers?: Readonly<Record<string, string | null>>
  readonly body?: Json
  /** What goes over the connection, where it is more than one request. */
  readonly raw?: string
}

export interface Recording {
  /** The group and the note. */
  readonly kind: string
  readonly group: string
  readonly note: string
  readonly request: RecordedRequest
  readonly reply: JsonObject
}

/** Where a recording goes. */
export type Target = Pick<StandInCore, 'url' | 'apiKey' | 'runJob'>

export async function readRecordings(name: string): Promise<readonly Recording[]> {
  const text = await readFile(new URL(`${name}.ndjson`, import.meta.url), 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { group = name, ...rest } = JSON.parse(line)
      return { ...rest, group, kind: `${group}: ${rest.note}` }
    })
}

/** The reply of the target, in the form of the recorded one. */
export async function replay({ group, request }: Recording, target: Target): Promise<JsonObject> {
  if (request.raw !== undefined) return exchange(request.raw, target)
  const response = await ask(request, target)
  if (!('headers' in response)) return response
  const header = /^header (\S+) of/.exec(group)?.[1]
  const { status, headers } = response
  if (header !== undefined) {
    const value = headers[header]
    const isSaid = value !== undefined && value !== 'keep-alive'
    return { status, ...(isSaid && { [header]: value }) }
  }
  const said = ['allow', 'cache-control', 'content-type'].flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return { status, headers: Object.fromEntries(said), ...bodyOf(response.text) }
}

interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

export function ask(
  { method, path, key, headers = {}, body }: RecordedRequest,
  { url, apiKey }: Target,
): Promise<Response | { error: string }> {
  const all = {
    ...(key !== null && { 'api-key': apiKey }),
    ...(body !== undefined && { 'content-type': 'application/json; charset=utf-8' }),
    ...headers,
  }
  const own = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [[name, value.replace('<key>', apiKey)] as const],
  )
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    // A core reads paths that `URL` cannot hold.
    const options = { hostname, port, method, path, headers: Object.fromEntries(own) }
    const asked = send(options, async (response: IncomingMessage) => {
      const text = await textOf(response)
      const said = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
      resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(said), text })
    })
    asked.on('error', ({ code }: NodeJS.ErrnoException) => resolve({ error: code ?? '' }))
    asked.end(body === undefined ? undefined : bytesOf(body))
  })
}

function bytesOf(body: Json): string | Buffer {
  if (typeof body === 'string') return body
  const { base64, before, repeat, times, after } = body as Record<string, string>
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  if (repeat !== undefined) return `${before}${repeat.repeat(Number(times))}${after}`
  return JSON.stringify(body)
}

/** All that comes back on a connection, until it is closed or silent. */
function exchange(raw: string, { url, apiKey }: Target): Promise<JsonObject> {
  const { host, hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(Number(port), hostname)
    const finish = (closed: boolean) => {
      socket.destroy()
      const [, text = ''] = received.split('\r\n\r\n')
      const statuses = [...received.matchAll(/HTTP\/1\.[01] (\d{3})/g)].map(([, code]) =>
        Number(code),
      )
      resolve({ closed, replies: statuses, text: text.split('\n')[0] ?? '' })
    }
    socket.on('data', (bytes) => {
      received += bytes
    })
    socket.on('error', reject)
    socket.on('end', () => finish(true))
    socket.setTimeout(500, () => finish(false))
    socket.write(raw.replaceAll('<key>', apiKey).replaceAll('Host: host', `Host: ${host}`))
  })
}

function bodyOf(text: string): JsonObject {
  try {
    const json = JSON.parse(text)
    if (typeof json === 'object') return { json: readable(json) as Json }
  } catch {
    // A text.
  }
  return { text }
}

/** Tokens in their parts. */
function readable(value: unknown, name = ''): unknown {
  if (name === 'jwt' && typeof value === 'string') return tokenParts(value)
  if (name === 'nextPaginationToken') return Buffer.from(String(value), 'base64').toString()
  if (Array.isArray(value)) return value.map((element) => readable(element))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([member, inner]) => [member, readable(inner, member)]),
  )
}

function tokenParts(jwt: string): JsonObject {
  const [header, payload] = jwt
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()))
  const lives = payload.exp - payload.iat
  const times = isNow(payload.iat) && lives > 0 && { iat: '<now>', exp: `<now + ${lives}>` }
  const order = Object.keys(payload)
    .filter((name) => !['iat', 'exp', 'iss'].includes(name))
    .join()
  return { header, payload: { ...payload, ...times }, order }
}

const PATTERNS: Readonly<Record<string, string>> = {
  '<now>': '(?:<now>|\\d{10}(?:\\d{3})?)',
  '<id>': '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  '<ms>': '\\d{13}',
  '<seconds>': '\\d+',
  '<hash>': '(?:\\$.+|[0-9a-f]+)',
  '<…>': '[^]*',
  'd-…': 'd-\\d{13}',
}
const PLACEHOLDER = /<(?:now|id|ms|seconds|hash|…)>|d-…/g

/** The reply of the target, with the recorded placeholders where it has what they stand for. */
export function masked(reply: Json, recorded: Json | undefined): Json {
  if (isCut(recorded)) return fitsCut(reply, recorded.cut) ? recorded : reply
  if (typeof recorded === 'string') return fits(recorded, reply) ? recorded : reply
  if (typeof recorded === 'number')
    return isRecordedTime(recorded) && isNow(reply) ? recorded : reply
  if (Array.isArray(reply)) {
    const list: readonly Json[] = Array.isArray(recorded) ? recorded : []
    return reply.map((element, index) => masked(element, list[index]))
  }
  if (!isJsonObject(reply) || !isJsonObject(recorded)) return reply
  return Object.fromEntries(
    Object.entries(reply).map(([name, value]) => [
      name,
      masked(value, Object.hasOwn(recorded, name) ? recorded[name] : undefined),
    ]),
  )
}

function isJsonObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isCut(recorded: Json | undefined): recorded is { cut: string } {
  return isJsonObject(recorded) && typeof recorded['cut'] === 'string'
}

function fits(recorded: string, reply: Json): boolean {
  if (recorded === '<…>') return true
  if (!recorded.match(PLACEHOLDER)) return false
  return new RegExp(`^${pattern(recorded)}$`).test(String(reply))
}

function pattern(recorded: string): string {
  const literal = recorded
    .split(PLACEHOLDER)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const placeholders = recorded.match(PLACEHOLDER) ?? []
  return literal
    .map((part, index) => `${part}${PATTERNS[placeholders[index] ?? ''] ?? ''}`)
    .join('')
}

function fitsCut(reply: Json, cut: string): boolean {
  const text = JSON.stringify(sorted(reply))
  // A placeholder that is cut itself is left out.
  const whole = cut.slice(0, -1).replace(/"?<[a-z …]*$/, '')
  return new RegExp(`^${pattern(whole)}`).test(text)
}

/** As the recording has it: members by name, but a token as it is. */
function sorted(value: Json, name = ''): Json {
  if (typeof value === 'number' && isNow(value)) return '<now>'
  if (Array.isArray(value)) return value.map((element) => sorted(element))
  if (!isJsonObject(value) || name === 'jwt') return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((member) => [member, sorted(value[member] ?? null, member)]),
  )
}

/** Seconds or milliseconds of the day on which the cores were recorded. */
function isRecordedTime(value: number): boolean {
  return /^17955\d{5}(\d{3})?$/.test(String(value))
}

function isNow(value: unknown): boolean {
  const milliseconds = Number(value) > 1e12 ? Number(value) : Number(value) * 1000
  return Math.abs(Date.now() - milliseconds) < 600_000
}
