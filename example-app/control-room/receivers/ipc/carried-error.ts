import { ServiceAuthError, type ServiceAuthErrorCode } from 'express-service-auth'

/** An error as plain data: a structured clone of one loses its class and its code. */
export interface CarriedError {
  readonly kind: 'ServiceAuthError' | 'TypeError' | 'Error'
  readonly message: string
  readonly code?: ServiceAuthErrorCode
}

export function carried(error: unknown): CarriedError {
  if (error instanceof ServiceAuthError) {
    return { kind: 'ServiceAuthError', message: error.message, code: error.code }
  }
  if (error instanceof TypeError) return { kind: 'TypeError', message: error.message }
  return { kind: 'Error', message: error instanceof Error ? error.message : String(error) }
}

export function uncarried({ kind, message, code = 'internal' }: CarriedError): Error {
  if (kind === 'ServiceAuthError') return new ServiceAuthError(code, message)
  return kind === 'TypeError' ? new TypeError(message) : new Error(message)
}
