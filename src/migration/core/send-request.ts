import { growingDelayMs } from '../../base/back-off.js'
import { parseJson } from '../../base/json.js'
import { pause } from '../../base/pause.js'
import { type Core, type CoreAnswer, callCore } from '../../client/core/call-core.js'
import { CoreFailure, type CoreFailureCode } from '../../client/core/core-failure.js'
import { CoreError, type CoreErrorCode } from './core-error.js'
import { plainRefusalIn, saysInMemory, saysNotFound } from './core-messages.js'
import { type Accepted, type Operation, operationPath } from './core-operation.js'

/** The core, and the time limits of one attempt in milliseconds. */
export interface CoreAccess {
  readonly core: Core
  readonly timeoutMs: Readonly<Record<Operation<unknown>['timeLimit'], number>>
}

const MAX_TRIES = 3
/** Delays after attempts that were answered 429 until their time limit. */
const BUSY_DELAY = { firstMs: 1000, maxMs: 30_000 }
const RETRY_DELAY = { firstMs: 100, maxMs: 1000 }

/**
 * Performs an operation with up to three attempts. A read is repeated if another attempt may succeed, a
 * write only if the request cannot have reached the core.
 *
 * @throws CoreError, or the reason of the signal.
 */
export async function ask<T>(
  access: CoreAccess,
  operation: Operation<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const result = await attempt(access, operation, signal)
    if ('value' in result) return result.value
    if (!result.isRepeatable || tries === MAX_TRIES) throw result.error
    await pause(growingDelayMs(tries, RETRY_DELAY), signal)
  }
}

/** Like `ask`, but while the core is busy it waits and repeats the operation until the signal aborts. */
export async function askPatiently<T>(
  access: CoreAccess,
  operation: Operation<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask(access, operation, signal)
    } catch (error) {
      if (!(error instanceof CoreError) || error.code !== 'busy') throw error
      await pause(growingDelayMs(tries, BUSY_DELAY), signal)
    }
  }
}

async function attempt<T>(
  { core, timeoutMs }: CoreAccess,
  operation: Operation<T>,
  signal: AbortSignal,
): Promise<Accepted<T> | Fault> {
  const { method, body, timeLimit, maxAnswerBytes } = operation
  const request = {
    method,
    path: operationPath(operation),
    headers: { accept: 'application/json' },
    ...(body !== undefined && { body }),
    timeoutMs: timeoutMs[timeLimit],
    maxAnswerBytes,
    signal,
  }
  try {
    const answer = await callCore(core, request)
    return acceptedOf(answer, operation) ?? faultOfAnswer(answer, operation)
  } catch (error) {
    if (error instanceof CoreFailure) return faultOfFailure(error, operation)
    throw error
  }
}

function acceptedOf<T>(answer: CoreAnswer, operation: Operation<T>): Accepted<T> | undefined {
  const { status, text } = answer
  if (text === undefined) {
    const isTooLarge = status === 200 && answer.fault === 'too_large'
    const { whenTooLarge } = operation
    return isTooLarge && whenTooLarge !== undefined ? { value: whenTooLarge } : undefined
  }
  // Ignores the media type, because the core sends JSON errors as `text/html`.
  if (status === 200) return operation.accept(parseJson(text))
  return status === 400 ? operation.acceptRefusal?.(parseJson(text)) : undefined
}

/** Why an attempt failed, and whether it can be repeated safely and may then succeed. */
interface Fault {
  readonly error: CoreError
  readonly isRepeatable: boolean
}

const isWrite = ({ method }: Operation<unknown>): boolean => method !== 'GET'

const FAILURE_CODES: Readonly<Record<CoreFailureCode, CoreErrorCode>> = {
  api_key_unavailable: 'invalid_api_key',
  timeout: 'timeout',
  unreachable: 'unreachable',
}

/** Converts a failure without an answer. */
function faultOfFailure(failure: CoreFailure, operation: Operation<unknown>): Fault {
  const { method, path } = operation
  const code = FAILURE_CODES[failure.code]
  const outcome = isWrite(operation) && failure.mayHaveArrived ? 'unknown' : 'refused'
  const why =
    code === 'invalid_api_key'
      ? 'the function `apiKey` failed or returned no valid key'
      : failure.message
  return {
    error: new CoreError(`${method} ${path}: ${why}`, { code, outcome }),
    isRepeatable: code !== 'invalid_api_key' && outcome === 'refused',
  }
}

/** Temporary errors: the core is starting, a proxy cannot reach it, or the reply was incomplete. */
const TEMPORARY: ReadonlySet<CoreErrorCode> = new Set(['server_error', 'malformed_reply'])

/** Converts an answer that is not a value of the operation. */
function faultOfAnswer(answer: CoreAnswer, operation: Operation<unknown>): Fault {
  const { method, path } = operation
  const { status } = answer
  const code = classifyAnswer(answer)
  // Only a 4xx proves that nothing was done. The core never redirects, so a redirect comes from another
  // server, which may have forwarded the request.
  const outcome = isWrite(operation) && (status < 400 || status > 499) ? 'unknown' : 'refused'
  const why = `the core answered ${status}${detailOf(code, answer, operation)}`
  return {
    error: new CoreError(`${method} ${path}: ${why}`, { code, outcome, status }),
    isRepeatable: !isWrite(operation) && TEMPORARY.has(code),
  }
}

const CODES: Readonly<Record<number, CoreErrorCode>> = {
  401: 'invalid_api_key',
  403: 'forbidden',
  404: 'not_found',
  413: 'too_large',
  429: 'busy',
}

/** The status that `fetch` returns for an opaque redirect. */
const OPAQUE_REDIRECT = 0

const isRedirect = (status: number): boolean =>
  status === OPAQUE_REDIRECT || (status >= 300 && status <= 399)

function classifyAnswer({ status, text }: CoreAnswer): CoreErrorCode {
  if (isRedirect(status)) return 'bad_request'
  if (status === 400 && text !== undefined && saysInMemory(text)) return 'in_memory_database'
  if (status === 404 && !saysNotFound(text)) return 'malformed_reply'
  if (status >= 400 && status <= 499) return CODES[status] ?? 'bad_request'
  return status >= 500 && status <= 599 ? 'server_error' : 'malformed_reply'
}

const WRONG_KEY = 'it refuses the API key; check the key, or the file it is read from'

function detailOf(
  code: CoreErrorCode,
  answer: CoreAnswer,
  { maxAnswerBytes }: Operation<unknown>,
): string {
  if (isRedirect(answer.status)) return ', a redirect, which is not followed'
  if (code === 'invalid_api_key') return `: ${WRONG_KEY}`
  if (code === 'in_memory_database') return ': it has only an in-memory database'
  if (code === 'malformed_reply') return `, ${formFault(answer, maxAnswerBytes)}`
  const known = answer.text === undefined ? undefined : plainRefusalIn(answer.text)
  return code === 'server_error' || known === undefined ? '' : `: ${known}`
}

function formFault(answer: CoreAnswer, maxAnswerBytes: number): string {
  if (answer.text !== undefined) return 'and not in the form of this operation'
  return answer.fault === 'too_large'
    ? `with more than ${maxAnswerBytes} bytes`
    : 'and not in UTF-8'
}
