import type { IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Served, serve } from '../support/receiver/serve.js'

export interface ScriptedAnswer {
  readonly status: number
  readonly headers?: Record<string, string>
  readonly body?: object
}

interface RecordedRequest {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface ScriptedServer extends Served {
  readonly requests: readonly RecordedRequest[]
  /** What to answer next, in this order; the last answer repeats. */
  script(...answers: (ScriptedAnswer | 'hang up')[]): void
}

/** A server on the other end of the wire that answers as told and remembers what it was sent. */
export async function startScriptedServer(): Promise<ScriptedServer> {
  const requests: RecordedRequest[] = []
  let script: (ScriptedAnswer | 'hang up')[] = []

  const server = await serve((request, response) => {
    void text(request).then((body) => {
      requests.push({ method: request.method, path: request.url, headers: request.headers, body })
      const answer = script.length > 1 ? script.shift() : script[0]
      if (answer === undefined || answer === 'hang up') return response.destroy()
      const type = { 'content-type': 'application/json' }
      return response
        .writeHead(answer.status, { ...type, ...answer.headers })
        .end(JSON.stringify(answer.body ?? {}))
    })
  })

  return {
    ...server,
    requests,
    script(...answers) {
      requests.length = 0
      script = answers
    },
  }
}
