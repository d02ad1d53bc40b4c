import type { ServerResponse } from 'node:http'
import { http } from '../../base/node-http.js'
import { isBodyless } from './stored-result.js'

/**
 * Keeps what Node has queued for a response (`100 Continue`, early hints) before its head. Node queues
 * it while another response on the connection is yet to be sent, and puts the head of a body that comes
 * as bytes before it: the client then reads it as the beginning of the body. A head that leaves with a
 * text in its own encoding is queued in order. See docs/decisions/queued-heads.md.
 */
export function keepHeadInOrder(response: ServerResponse): void {
  if (!isQueued(response)) return
  const { writeHead } = response
  response.writeHead = (...args: unknown[]): ServerResponse => {
    const returned: ServerResponse = Reflect.apply(writeHead, response, args)
    if (isQueued(response) && response.writableLength > 0 && mayHaveBody(response)) {
      Reflect.apply(http.ServerResponse.prototype.write, response, ['', 'latin1'])
    }
    return returned
  }
}

const isQueued = ({ socket }: ServerResponse): boolean => socket === null

/** Without a body, Node itself sends the head as text. */
const mayHaveBody = ({ req, statusCode }: ServerResponse): boolean =>
  req?.method !== 'HEAD' && !isBodyless(statusCode)
