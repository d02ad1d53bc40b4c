import type { ServerResponse } from 'node:http'
import type { Refusal } from './gate.js'

interface Answer extends Partial<Pick<Refusal, 'headers'>> {
  readonly status: number
  readonly type: string
  readonly content: string | Buffer
}

export function send(response: ServerResponse, { status, type, content, headers }: Answer): void {
  const length = Buffer.byteLength(content)
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': length, ...headers })
  response.end(content)
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  send(response, { status, type: 'application/json', content: JSON.stringify(value) })
}

/** For the page, which shows it to its visitor. */
export function sendError(response: ServerResponse, { status, text }: Refusal): void {
  sendJson(response, { error: text }, status)
}

/** For whoever may not ask, or asks for what is not there. */
export function refuse(response: ServerResponse, { text, ...rest }: Refusal): void {
  send(response, { ...rest, type: 'text/plain; charset=utf-8', content: text })
}
