import type { ErrorRequestHandler } from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { expect } from 'vitest'

/** Expects no `status`, `statusCode` or `headers`, even inherited, because Express would answer with them. */
export function expectOwnError(error: unknown, members: object = {}): void {
  expect(error).toBeInstanceOf(ServiceAuthError)
  expect(error).toMatchObject(members)
  for (const name of ['status', 'statusCode', 'headers']) expect(name in Object(error)).toBe(false)
}

/** An error handler that continues as if nothing had failed. */
export const ignoreErrors: ErrorRequestHandler = (_error, _request, _response, next) => next()
