import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { serve } from '../support/receiver/serve.js'
import { knowToken } from '../support/secret-search/index.js'
import { compact, type Members, type WhenFinished } from './kit.js'

interface MintRequest {
  readonly payload: Members
  readonly validity: number
  readonly jwksDomain: string
}

/** What a core that is not well does with a request. */
export type Lie = (response: ServerResponse, asked: MintRequest) => void

export interface LyingCore {
  readonly url: string
  readonly requests: readonly { url: string; headers: IncomingHttpHeaders; body: unknown }[]
  /** What it does from now on. */
  lie(next: Lie): void
  close(): Promise<void>
}

/** A core of which the test says what it answers; it ends with the test, which runs alone or tells how. */
export async function startLyingCore(
  first: Lie,
  whenFinished: WhenFinished = onTestFinished,
): Promise<LyingCore> {
  const requests: { url: string; headers: IncomingHttpHeaders; body: unknown }[] = []
  let lie = first
  const { url, close } = await serve(async (request, response) => {
    const body = (await json(request)) as MintRequest
    requests.push({ url: request.url ?? '', headers: request.headers, body })
    lie(response, body)
  })
  whenFinished(close)
  return {
    url,
    requests,
    close,
    lie(next) {
      lie = next
    },
  }
}

/** The answer of a core, with a token that differs in this from the one that was asked for. */
export function minted(asked: MintRequest, header: Members = {}, payload: Members = {}): string {
  const iat = 1_700_000_000
  const jwt = compact(
    { kid: 'd-1700000000000', typ: 'JWT', alg: 'RS256', ...header },
    { iat, exp: iat + asked.validity, iss: asked.jwksDomain, ...asked.payload, ...payload },
  )
  knowToken(jwt)
  return JSON.stringify({ status: 'OK', jwt })
}

export const mints =
  (header: Members = {}, payload: Members = {}): Lie =>
  (response, asked) =>
    answers(200, minted(asked, header, payload))(response, asked)

export const answers =
  (status: number, text: string | Buffer, headers: Record<string, string> = {}): Lie =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
  }

export const hangs: Lie = () => {}

export const hangsUp: Lie = (response) => response.destroy()

/** Sends the beginning of an answer, and then nothing or the end of the connection. */
export const breaksOff =
  (how: 'hangs' | 'hangs up', status = 200): Lie =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': '500' })
    response.write('{"status":"OK","jwt":"ey', () => {
      if (how === 'hangs up') response.destroy()
    })
  }
