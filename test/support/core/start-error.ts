/**
 * An error that the person who starts a service must fix, such as a port in use or a malformed
 * address. The command line prints its message as one line, without a stack trace.
 */
export class StartError extends Error {
  override readonly name = 'StartError'
}
