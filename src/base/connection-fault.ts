/** Why a connection failed. */
export interface ConnectionFault {
  /** Node's code of the error, such as `ECONNREFUSED`. */
  readonly systemCode?: string
  /** No connection was made, so nothing was sent. */
  readonly isBeforeConnection: boolean
}

/** How many causes of causes are read; Node's chains are shorter. */
const MAX_CAUSES = 8
const SYSTEM_CODE = /^[A-Z][A-Z0-9_]{1,40}$/
/** The `syscall` of an error that Node had before it sent anything. */
const STEPS_BEFORE_CONNECTION = new Set(['connect', 'getaddrinfo'])
const CONNECT_TIMEOUT = 'UND_ERR_CONNECT_TIMEOUT'

/** Reads the innermost cause that has a code in the form of Node's codes. */
export function connectionFault(thrown: unknown): ConnectionFault {
  let fault: ConnectionFault = { isBeforeConnection: false }
  let cause = thrown
  for (let depth = 0; depth < MAX_CAUSES && cause instanceof Error; depth += 1) {
    const { code } = cause as NodeJS.ErrnoException
    if (typeof code === 'string' && SYSTEM_CODE.test(code)) {
      fault = { systemCode: code, isBeforeConnection: failedBeforeConnection(cause) }
    }
    cause = cause.cause
  }
  return fault
}

/** Node's code of the innermost cause that has one. */
export const systemCodeOf = (thrown: unknown): string | undefined =>
  connectionFault(thrown).systemCode

/** For a host name with several IP addresses, Node throws an `AggregateError` with an error for each. */
function failedBeforeConnection(error: NodeJS.ErrnoException): boolean {
  if (error instanceof AggregateError) {
    return error.errors.length > 0 && error.errors.every((each) => isStepBeforeConnection(each))
  }
  return isStepBeforeConnection(error)
}

function isStepBeforeConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code, syscall = '' } = error as NodeJS.ErrnoException
  return code === CONNECT_TIMEOUT || STEPS_BEFORE_CONNECTION.has(syscall)
}
