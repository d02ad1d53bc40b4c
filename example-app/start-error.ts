/**
 * What the person who started a service has to put right: a port in use, a malformed address.
 * The command line prints its message as one line, without a stack trace.
 */
export class StartError extends Error {
  override readonly name = 'StartError'
}
