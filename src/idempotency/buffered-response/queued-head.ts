import type { ServerResponse } from 'node:http'
import { http } from '../../base/node-http.js'
import { isBodyless } from './stored-result.js'

/**
 * Keeps interim responses (`100 Continue`, early hints) before the head of the final one. Node queues them while an
 * earlier response on the connection is not sent yet. If the body comes as bytes, Node puts the head before the
 * queue, and the client reads the interim responses as the beginning of the body. A head that leaves with a string
 * of an explicit encoding is queued in order. See docs/decisions/buffered-response.md.
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
