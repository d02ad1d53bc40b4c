import type { ServerResponse } from 'node:http'
import { call, type Sending } from './sending.js'
import { type Header, headersOf } from './waiting-head.js'

/** A response as it was when it was captured. */
export interface Entered {
  readonly headers: readonly Header[]
  readonly on: ServerResponse['on']
  readonly fields: Pick<ServerResponse, (typeof FIELDS)[number]>
}

/** `sendDate` is among them because the header `Date` is: to take it off changes the field. */
const FIELDS = ['statusCode', 'statusMessage', 'sendDate', 'strictContentLength'] as const

export function enteredAs(response: ServerResponse): Entered {
  const { statusCode, statusMessage, sendDate, strictContentLength, on } = response
  const fields = { statusCode, statusMessage, sendDate, strictContentLength }
  return { headers: headersOf(response), on, fields }
}

/** Makes a response again what it was, by the functions that it had then. */
export function restore(sending: Sending, { headers, on, fields }: Entered): void {
  const { response } = sending
  const wasConnectionSet = response.hasHeader('connection')
  // All of them, so that they come in their order again.
  for (const name of response.getHeaderNames()) call(sending, 'removeHeader', [name])
  for (const header of headers) call(sending, 'setHeader', header)
  // Node no longer says so by itself once the header has been removed.
  if (wasConnectionSet && !response.hasHeader('connection') && !response.shouldKeepAlive) {
    call(sending, 'setHeader', ['Connection', 'close'])
  }
  Object.assign(response, fields)
  if (response.on !== on) response.on = on
  // Trailers would go with a later answer that has none.
  response.addTrailers({})
}
