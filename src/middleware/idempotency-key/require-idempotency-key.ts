import type { NextFunction, Request, Response } from 'express'
import { announceIdempotency } from '../../base/decision/idempotency-event.js'
import { ignoreRejection } from '../../base/decision/observers.js'
import { toServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { digestOfParts } from '../../base/digest.js'
import { headerValues, readKey } from '../../base/raw-headers.js'
import { isDisconnected } from '../../idempotency/buffered-response/closing.js'
import {
  deriveRecordId,
  fingerprintOf,
  mediaTypeOf,
  operationOf,
  type RequestBody,
  readRequestBody,
} from '../../idempotency/fingerprint.js'
import type { IdempotencyContext } from '../../idempotency/run.js'
import { type AnyRouteHandler, fitAnyRoute } from '../any-route.js'
import { requestIdOf } from '../request-id.js'
import { admittedState, assertBeforeKey } from '../request-state.js'
import { tokenUse } from '../require-single-use.js'
import { type Emit, refuseKey, refuseToken } from './answer.js'
import {
  type IdempotencyOptions,
  type IdempotencySettings,
  parseIdempotencyOptions,
  type RequestNamer,
} from './idempotency-options.js'
import { run } from './run.js'

declare global {
  namespace Express {
    interface Request {
      /** The reservation, in a handler behind `requireIdempotencyKey`; absent without a key. */
      idempotency?: IdempotencyContext
    }
  }
}

/**
 * Reserves the request's `Idempotency-Key` (IETF draft-ietf-httpapi-idempotency-key-header) before the
 * handler runs, stores the response before it is sent, and answers identical retries with it. With a
 * coupled store the handler runs inside a transaction, and what it writes commits together with its
 * answer. Needs a `serviceAuth` before it, and the body parsed or the option `fingerprint`.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of its range.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { memoryStore, requireIdempotencyKey, serviceAuth } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const store = memoryStore()
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const app = express()
 * app.post('/orders', auth, express.json(), requireIdempotencyKey({ store }), (req, res) => {
 *   res.status(201).json({ item: req.body.item })
 * })
 * ```
 */
export function requireIdempotencyKey(options: IdempotencyOptions): AnyRouteHandler {
  const settings = parseIdempotencyOptions(options)
  return fitAnyRoute(MIDDLEWARE, (request, response, next) => {
    const fail = (error: unknown): void => next(toServiceAuthError(MIDDLEWARE, error))
    try {
      handleRequest({ request, response, next }, settings)?.catch(fail)
    } catch (error) {
      fail(error)
    }
  })
}

const MIDDLEWARE = 'requireIdempotencyKey'

interface ExpressContext {
  readonly request: Request
  readonly response: Response
  readonly next: NextFunction
}

/**
 * Reads the key of a request, its scope and its fingerprint. Programming errors are thrown whether or not the key is
 * valid. Returns `undefined` for a request that needs no store, once it is answered or passed on, or if the client
 * disconnected before its body was read.
 *
 * @throws ServiceAuthError
 */
function handleRequest(
  { request, response, next }: ExpressContext,
  settings: IdempotencySettings,
): Promise<void> | undefined {
  assertHttp1(request)
  const state = admittedState(request, MIDDLEWARE)
  assertBeforeKey(state, `a second ${MIDDLEWARE}`, 'remove one of them')
  if (settings.usedTokens !== undefined && state.storesThatConsumed !== undefined) {
    throw wrongWiring(`${MIDDLEWARE} with singleUse uses the token up: remove requireSingleUse`)
  }
  if (response.headersSent)
    throw wrongWiring(`${MIDDLEWARE} must come before the response has begun`)
  const body = readRequestBody(request)
  if (body.type === 'unread') {
    // Not a mistake of the app: parsers leave the body of a disconnected client unread.
    if (request.destroyed || isDisconnected(response)) return undefined
    if (settings.fingerprint === undefined) {
      throw wrongWiring(
        `${MIDDLEWARE} needs the body parsed: put a body parser before it that takes the Content-Type of the request, or give the option fingerprint, with which the handler may read the body itself`,
      )
    }
  }
  const { issuer, audience, name: caller } = state.admission.identity
  const operation = chooseOperation(request, settings.operation)
  const scope = { issuer, audience, caller, operation }
  const header = readKey(headerValues(request, 'idempotency-key'))
  const fingerprint = fingerprintRequest(request, body, settings.fingerprint)
  const key =
    header.type === 'key'
      ? { key: header.key, recordId: deriveRecordId(scope, header.key), fingerprint }
      : undefined
  const emit = createEmitter(request, settings, { caller, recordId: key?.recordId })
  const context = { state, request, response, next, emit }
  if (header.type === 'invalid' || (header.type === 'missing' && !settings.runsWithoutKey)) {
    refuseKey(context, header.type === 'missing' ? 'key_missing' : 'key_invalid')
    return undefined
  }
  const use = settings.usedTokens === undefined ? undefined : tokenUse(state.admission)
  if (use?.ok === false) {
    refuseToken(context, use)
    return undefined
  }
  return run(context, settings, { key, token: use?.value })
}

/** Without a key there is no `recordId`. */
function createEmitter(
  request: Request,
  { reportFailure }: IdempotencySettings,
  { caller, recordId }: { readonly caller: string; readonly recordId: string | undefined },
): Emit {
  return (event) => {
    if (event.reason === 'store_unavailable' || event.reason === 'commit_unknown') reportFailure()
    try {
      announceIdempotency(() => {
        const requestId = requestIdOf(request)
        return {
          ...event,
          by: MIDDLEWARE,
          caller,
          ...(recordId !== undefined && { record: recordId }),
          ...(requestId !== undefined && { requestId }),
        }
      })
    } catch {
      // The app's request may throw when its id is read. The outcome is the same.
    }
  }
}

/** An HTTP/2 request may have a body without a header for it, and its response is another class. */
function assertHttp1({ httpVersion, httpVersionMajor }: Request): void {
  if (httpVersionMajor <= 1) return
  throw wrongWiring(
    `${MIDDLEWARE} needs HTTP/1.1, and the request came over HTTP/${httpVersion}: terminate HTTP/2 at a proxy, or serve the route with node:http`,
  )
}

function chooseOperation(request: Request, operation: IdempotencySettings['operation']): string {
  if (operation !== undefined) {
    return typeof operation === 'string' ? operation : callOption(operation, request, 'operation')
  }
  // Without a route there is no pattern, and a path would give each order its own operation.
  const route: unknown = request.route
  if (route === undefined)
    throw wrongWiring(`${MIDDLEWARE} needs the option operation outside of a route`)
  return operationOf(request.method, request.baseUrl, (route as { path: unknown }).path)
}

function fingerprintRequest(
  request: Request,
  body: RequestBody,
  namer: RequestNamer | undefined,
): string {
  // A digest, like the default, because the text may contain secrets that no store should get.
  if (namer !== undefined) return digestOfParts([callOption(namer, request, 'fingerprint')])
  const { method, originalUrl: target } = request
  const fingerprint = fingerprintOf({ method, target, mediaType: mediaTypeOf(request), body })
  if (fingerprint !== undefined) return fingerprint
  throw wrongWiring(
    `${MIDDLEWARE} needs the option fingerprint: req.body is not what a JSON, form, text or raw parser produces`,
  )
}

function callOption(namer: RequestNamer, request: Request, option: string): string {
  const text: unknown = namer(request)
  if (typeof text === 'string') return text
  ignoreRejection(text)
  throw wrongWiring(`${MIDDLEWARE}: the option ${option} must return a string`)
}
