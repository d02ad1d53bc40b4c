import { type IncomingHttpHeaders, request } from 'node:http'
import { issuer } from '../../support/issuer/issuer.js'

export interface QuickAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The problem type, or `undefined`. */
  readonly problem: string | undefined
}

export interface QuickCall {
  readonly key: string
  readonly body: string
}

/** For thousands of calls: one token, and no more of the answer than is looked at. */
export function quickCalls(): {
  post(port: number, call: QuickCall): Promise<QuickAnswer>
} {
  const authorization = `Bearer ${issuer.token()}`
  return {
    post(port, { key, body }) {
      const headers = {
        authorization,
        'idempotency-key': key,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }
      const target = { host: '127.0.0.1', port, method: 'POST', path: '/orders/1' }
      return new Promise((resolve, reject) => {
        const sent = request({ ...target, headers, agent: false })
        sent.on('error', reject)
        sent.on('response', (message) => {
          let text = ''
          message.setEncoding('utf8').on('data', (part: string) => {
            text += part
          })
          message.on('error', reject)
          message.on('end', () => {
            const { statusCode: status = 0, headers: received } = message
            resolve({ status, headers: received, body: text, problem: problemOf(received, text) })
          })
        })
        sent.end(body)
      })
    },
  }
}

function problemOf(headers: IncomingHttpHeaders, body: string): string | undefined {
  if (headers['content-type'] !== 'application/problem+json') return undefined
  const { type } = JSON.parse(body) as { type: string }
  return type.replace('urn:express-service-auth:', '')
}
