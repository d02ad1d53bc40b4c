import type { Request, Response } from 'express'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { digestOfParts } from '../../base/digest.js'
import { type KeyHeader, readKey } from '../../base/idempotency-key.js'
import { headerValues } from '../../base/raw-headers.js'
import { isDisconnected } from '../../idempotency/buffered-response/client-connection.js'
import { fingerprintOf } from '../../idempotency/fingerprint.js'
import { type KeyScope, operationOf } from '../../idempotency/record-key.js'
import { mediaTypeOf, type RequestBody, readBody } from '../../idempotency/request-body.js'
import { type AdmittedState, admittedState, assertBeforeKey } from '../request-state.js'

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
 * right, wrong or missing. Nothing where the caller has hung up before its body was read.
 *
 * @throws ServiceAuthError
 */
export function readIdempotentRequest(
  request: Request,
  response: Response,
  options: IdempotentRequestOptions,
): IdempotentRequest | undefined {
  assertHttp1(request)
  const state = admittedState(request, BY)
  assertBeforeKey(state, `a second ${BY}`, 'remove one of them')
  const { issuer, audience, name: caller } = state.admission.identity
  if (response.headersSent) throw wrongWiring(`${BY} must come before the response has begun`)
  const body = readBody(request)
  if (body.type === 'unread') {
    // Parsers pass over what is left of a caller who has hung up.
    if (request.destroyed || isDisconnected(response)) return undefined
    throw wrongWiring(
      `${BY} needs the body parsed: move the body parser before it, or read the body in another way before it and give the option fingerprint`,
    )
  }
  const operation = nameOperation(request, options.operation)
  return {
    state,
    header: readKey(headerValues(request, 'idempotency-key')),
    fingerprint: nameRequest(request, body, options.fingerprint),
    scope: { issuer, audience, caller, operation },
  }
}

/** HTTP/2 lets a body come without any header that says so, and has another kind of response. */
function assertHttp1({ httpVersion, httpVersionMajor }: Request): void {
  if (httpVersionMajor <= 1) return
  throw wrongWiring(
    `${BY} needs HTTP/1.1, and the request came over HTTP/${httpVersion}: let a proxy end it, or serve the route by node:http`,
  )
}

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
  body: RequestBody,
  fingerprint: RequestNamer | undefined,
): string {
  // A digest, like the default: it may hold secrets, and stores are given no other form.
  if (fingerprint !== undefined) return digestOfParts([given(fingerprint, request, 'fingerprint')])
  const { method, originalUrl: target } = request
  const made = fingerprintOf({ method, target, mediaType: mediaTypeOf(request), body })
  if (made !== undefined) return made
  throw wrongWiring(
    `${BY} needs the option fingerprint: the body is not in req.body as a parser of JSON, forms, text or bytes leaves it`,
  )
}

function given(namer: RequestNamer, request: Request, option: string): string {
  const name: unknown = namer(request)
  if (typeof name === 'string') return name
  // One that was written as an async function: its rejection must not end the process.
  if (name instanceof Promise) name.catch(() => {})
  throw wrongWiring(`${BY}: the option ${option} must return a string`)
}
