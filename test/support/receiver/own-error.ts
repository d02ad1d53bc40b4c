import type { ErrorRequestHandler } from 'express'
import { ServiceAuthError } from 'express-service-auth'
import { expect } from 'vitest'

/** Neither `status`, `statusCode` nor `headers`, own or inherited: Express would answer with them. */
export function expectOwnError(error: unknown, members: object = {}): void {
  expect(error).toBeInstanceOf(ServiceAuthError)
  expect(error).toMatchObject(members)
  for (const name of ['status', 'statusCode', 'headers']) expect(name in Object(error)).toBe(false)
}

/** An error handler of an app that goes on as if nothing had failed. */
export const ignoreErrors: ErrorRequestHandler = (_error, _request, _response, next) => next()
