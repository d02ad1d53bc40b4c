import { growingDelayMs } from '../../base/back-off.js'
import { pause, withDeadline } from '../../base/deadline.js'
import { connectionFault, readResponseBody, retryAfterMs } from '../../base/fetch.js'
import { type ApiKey, CoreFailure, currentKey, operationUrl } from './core-options.js'

/** The connection settings of the identity core. */
export interface Core {
  readonly baseUrl: string
  readonly apiKey: ApiKey
  readonly fetch: typeof globalThis.fetch
}

/** A request to the core. */
export interface CoreRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Begins with a slash; includes the query, if any. */
  readonly path: string
  /** Headers in addition to `api-key`, and to `content-type` if there is a body. */
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: object
  /** Milliseconds for a try: the key function, the response body, repetitions after a 401 or a 429, and their waits. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  /** Aborts the request; the caller then gets its reason. */
  readonly signal: AbortSignal
}

export type CoreAnswer =
  /** `reason`: the text of a 4xx without the key and without tokens, for messages. */
  | { readonly status: number; readonly text: string; readonly reason?: string }
  /** `too_large`: larger than `maxAnswerBytes`. */
  | {
      readonly status: number
      readonly text: undefined
      readonly fault: 'too_large' | 'not_utf8'
    }

/** The result of a try: a value, or an error and whether another try is safe and may succeed. */
export type Verdict<T> =
  | { readonly value: T }
  | { readonly error: Error; readonly isRepeatable: boolean }

/** When a request is sent again. */
export interface RetryPolicy<T> {
  /** Decides on the end of a try: an answer of any status, or the failure to get one. */
  judge(end: CoreAnswer | CoreFailure): Verdict<T>
  /** Waits for a busy core until the signal aborts, at most the time limit at once. */
  readonly isPatient?: boolean | undefined
}

const MAX_TRIES = 3
const RETRY_DELAY = { firstMs: 100, maxMs: 1000 }

const BUSY_STATUS = 429
const BUSY_DELAY = { firstMs: 100, maxMs: 5000 }

/**
 * Sends a request, and sends it again in three cases. After a 401 it calls a key function once more, because the
 * key may have been rotated. After a 429, which had no effect, it waits. After an end that the policy judges as
 * repeatable it makes another try, up to three. Redirects are not followed.
 *
 * @throws the error of the last verdict, or the reason of the signal.
 */
export async function callWithRetries<T>(
  core: Core,
  request: CoreRequest,
  { judge, isPatient = false }: RetryPolicy<T>,
): Promise<T> {
  // A body that cannot be serialised is the caller's mistake, not the core's.
  const text = request.body === undefined ? undefined : JSON.stringify(request.body)
  const newLimit = (): number => performance.now() + request.timeoutMs
  let endsAt = newLimit()
  let busyAnswers = 0
  let tries = 1
  for (;;) {
    const { end, retryAfterMs: hintMs = 0 } = await send(core, request, { text, endsAt })
    if (!(end instanceof CoreFailure) && end.status === BUSY_STATUS) {
      busyAnswers += 1
      const waitMs = hintMs + growingDelayMs(busyAnswers, BUSY_DELAY)
      const isInTime = performance.now() + waitMs < endsAt
      if (isInTime || isPatient) {
        await pause(Math.min(waitMs, request.timeoutMs), request.signal)
        if (!isInTime) endsAt = newLimit()
        continue
      }
    }
    const verdict = judge(end)
    if ('value' in verdict) return verdict.value
    if (!verdict.isRepeatable || tries === MAX_TRIES) throw verdict.error
    await pause(growingDelayMs(tries, RETRY_DELAY), request.signal)
    tries += 1
    endsAt = newLimit()
  }
}

/**
 * Returns the core's answer, of any status, of a single try.
 *
 * @throws CoreFailure if there is no answer.
 */
export const callCore = (core: Core, request: CoreRequest): Promise<CoreAnswer> =>
  callWithRetries(core, request, {
    judge: (end) =>
      end instanceof CoreFailure ? { error: end, isRepeatable: false } : { value: end },
  })

const WRONG_KEY_STATUS = 401

interface Received {
  readonly end: CoreAnswer | CoreFailure
  readonly retryAfterMs?: number | undefined
}

/** Sends a request, and after a 401 once more with the key that a key function then returns. */
async function send(
  core: Core,
  request: CoreRequest,
  { text, endsAt }: { readonly text: string | undefined; readonly endsAt: number },
): Promise<Received> {
  let isWaitingForKey = true
  const limit = {
    timeoutMs: endsAt - performance.now(),
    timeoutError: () => new CoreFailure(isWaitingForKey ? 'api_key_unavailable' : 'timeout'),
    signal: request.signal,
    abortWhenSettled: true,
  }
  const sendOnce = async (signal: AbortSignal) => {
    isWaitingForKey = true
    const key = await currentKey(core.apiKey)
    isWaitingForKey = false
    signal.throwIfAborted()
    return exchange(core, request, { key, text, signal })
  }
  try {
    return await withDeadline(limit, async ({ signal }) => {
      const received = await sendOnce(signal)
      const isWrongKey = received.end.status === WRONG_KEY_STATUS
      return isWrongKey && typeof core.apiKey === 'function' ? sendOnce(signal) : received
    })
  } catch (error) {
    request.signal.throwIfAborted()
    const isFailure = error instanceof CoreFailure
    return { end: isFailure ? error : new CoreFailure('unreachable', connectionFault(error)) }
  }
}

interface Sending {
  readonly key: string
  /** The request body. */
  readonly text: string | undefined
  readonly signal: AbortSignal
}

async function exchange(
  core: Core,
  { method, path, headers, maxAnswerBytes }: CoreRequest,
  { key, text, signal }: Sending,
): Promise<Received & { readonly end: CoreAnswer }> {
  const response = await core.fetch(operationUrl(core.baseUrl, path), {
    method,
    headers: {
      ...headers,
      'api-key': key,
      ...(text !== undefined && { 'content-type': 'application/json; charset=utf-8' }),
    },
    ...(text !== undefined && { body: text }),
    redirect: 'manual',
    signal,
  })
  // A custom `fetch` may have followed a redirect nevertheless.
  if (response.redirected) throw new CoreFailure('unreachable')
  const end = toAnswer(response.status, await readResponseBody(response, maxAnswerBytes), key)
  return { end, retryAfterMs: retryAfterMs(response.headers, Date.now()) }
}

function toAnswer(status: number, bytes: Buffer | undefined, key: string): CoreAnswer {
  if (bytes === undefined) return { status, text: undefined, fault: 'too_large' }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { status, text: undefined, fault: 'not_utf8' }
  }
  // An HTML page does not come from the core.
  const isReason = status >= 400 && status <= 499 && !text.trimStart().startsWith('<')
  return {
    status,
    text,
    ...(isReason && { reason: text.replaceAll(key, CUT).replace(TOKEN, CUT) }),
  }
}

const MAX_EXCERPT_LENGTH = 200
const CUT = '…'
/** A token, or the beginning of one: its header is a JSON object, whose base64url begins with `ey`. */
const TOKEN = /\bey[\w-]{4,}[\w.-]*/g

/** Returns the beginning of a text in one line of ASCII. */
export function excerptOf(text: string): string {
  const line = text
    .replace(/[^\x20-\x7e…]+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return line.length > MAX_EXCERPT_LENGTH ? line.slice(0, MAX_EXCERPT_LENGTH) + CUT : line
}
