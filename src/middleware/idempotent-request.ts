import type { IncomingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'
import { digestOfParts } from '../base/digest.js'
import { headerValues } from '../base/raw-headers.js'
import { wrongWiring } from '../decision/fault.js'
import { fingerprintOf } from '../idempotency/fingerprint.js'
import { type KeyHeader, readKey } from '../idempotency/key.js'
import { type KeyScope, operationOf } from '../idempotency/operation.js'
import { type AdmittedState, admittedState, assertBeforeKey } from './request-state.js'

const BY = 'requireIdempotencyKey'

/** Names a request for its retry, or the operation of its key. */
export type RequestNamer = (request: Request) => string

export interface IdempotentRequestOptions {
  readonly operation: string | RequestNamer | undefined
  readonly fingerprint: RequestNamer | undefined
}

/** A request under a key: the key, what it is scoped to, and what a retry is recognised by. */
export interface IdempotentRequest {
  readonly state: AdmittedState
  readonly header: KeyHeader
  readonly fingerprint: string
  readonly scope: KeyScope
}

/**
 * Reads the key of a request and what belongs to it. Programming errors are thrown whether the key is
 * right, wrong or missing.
 *
 * @throws ServiceAuthError
 */
export function readIdempotentRequest(
  request: Request,
  response: Response,
  options: IdempotentRequestOptions,
): IdempotentRequest {
  const state = admittedState(request, BY)
  assertBeforeKey(state, `a second ${BY}`, 'remove one of them')
  if (response.headersSent) throw wrongWiring(`${BY} must come before the response has begun`)
  const { headers } = request
  const hasBody = hasBodyOnWire(headers)
  if (hasBody && !request.readableEnded) {
    throw wrongWiring(`${BY} needs the body parsed: move the body parser before it`)
  }
  const { issuer, audience, name: caller } = state.admission.identity
  const operation = nameOperation(request, options.operation)
  const contentType = headers['content-type']
  return {
    state,
    header: readKey(headerValues(request, 'idempotency-key')),
    fingerprint: nameRequest(request, { hasBody, contentType }, options.fingerprint),
    scope: { issuer, audience, caller, operation },
  }
}

const hasBodyOnWire = (headers: IncomingHttpHeaders): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

function nameOperation(request: Request, operation: IdempotentRequestOptions['operation']): string {
  if (operation !== undefined) {
    return typeof operation === 'string' ? operation : given(operation, request, 'operation')
  }
  // Without a route there is no pattern, and a path would give each order its own operation.
  const route: unknown = request.route
  if (route === undefined) throw wrongWiring(`${BY} needs the option operation outside of a route`)
  return operationOf(request.method, request.baseUrl, (route as { path: unknown }).path)
}

function nameRequest(
  request: Request,
  { hasBody, contentType }: { hasBody: boolean; contentType: string | undefined },
  fingerprint: RequestNamer | undefined,
): string {
  // A digest, like the default: stores take no other form, and what is in it may be secret.
  if (fingerprint !== undefined) return digestOfParts([given(fingerprint, request, 'fingerprint')])
  const { method, originalUrl: target, body } = request
  const isLeftOver = hasBody && isEmptyObject(body) && !isParsersEmpty(request, contentType)
  const made = isLeftOver
    ? undefined
    : fingerprintOf({ method, target, contentType, hasBody, body })
  if (made !== undefined) return made
  throw wrongWiring(`${BY} needs the option fingerprint for a body that is not JSON, form or bytes`)
}

/** Express 4's parsers leave `{}` for a body that they have not read, whoever reads it afterwards. */
const isEmptyObject = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && !Array.isArray(body) && !hasMembers(body)

const hasMembers = (body: object): boolean =>
  Object.keys(body).length > 0 || ArrayBuffer.isView(body)

/** `_body` is how body-parser tells its kind that it has read the body. */
const isParsersEmpty = (request: Request, contentType = ''): boolean =>
  (request as { _body?: unknown })._body === true ||
  /^[^;]*(json|form-urlencoded)\s*(;|$)/i.test(contentType)

function given(namer: RequestNamer, request: Request, option: string): string {
  const name: unknown = namer(request)
  if (typeof name === 'string') return name
  // One that was written as an async function: its rejection must not end the process.
  if (name instanceof Promise) name.catch(() => {})
  throw wrongWiring(`${BY}: the option ${option} must return a string`)
}
