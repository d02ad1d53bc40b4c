/**
 * What the person who started a service has to put right: a port in use, a malformed address.
 * The command line prints its message as one line, without a stack trace.
 */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** Makes something of options from the environment; what it says of a wrong one is a `StartError`. */
export function explainingOptions<Made>(make: () => Made): Made {
  try {
    return make()
  } catch (error) {
    if (error instanceof TypeError) throw new StartError(error.message)
    throw error
  }
}
