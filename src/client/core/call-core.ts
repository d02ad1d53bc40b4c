import { growingDelayMs } from '../../base/back-off.js'
import { connectionFault } from '../../base/connection-fault.js'
import { withDeadline } from '../../base/deadline.js'
import { pause } from '../../base/pause.js'
import { readResponseBody } from '../../base/response-body.js'
import { retryAfterMs } from '../../base/retry-after.js'
import { CoreFailure } from './core-failure.js'
import { type ApiKey, currentKey, operationUrl } from './core-options.js'

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
  /** Milliseconds for everything: the key function, the response body, retries and their waits. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  /** Aborts the request; the caller then gets its reason. */
  readonly signal: AbortSignal
}

export type CoreAnswer =
  /** `excerpt`: the beginning of the text of a 4xx, for messages, without the key and without tokens. */
  | { readonly status: number; readonly text: string; readonly excerpt?: string }
  /** `too_large`: larger than `maxAnswerBytes`. */
  | {
      readonly status: number
      readonly text: undefined
      readonly fault: 'too_large' | 'not_utf8'
    }

const WRONG_KEY_STATUS = 401
const BUSY_STATUS = 429
const BUSY_DELAY = { firstMs: 100, maxMs: 5000 }

/**
 * Returns the core's answer, of any status. After a 401 it calls a key function once more and repeats
 * the request, because the key may have been rotated. After a 429, which had no effect, it repeats the
 * request for as long as the time limit allows. Redirects are not followed.
 *
 * @throws CoreFailure if there is no answer.
 */
export async function callCore(core: Core, request: CoreRequest): Promise<CoreAnswer> {
  // Outside the `try`: a body that cannot be serialised is the caller's mistake, not the core's.
  const text = request.body === undefined ? undefined : JSON.stringify(request.body)
  let isWaitingForKey = true
  const limit = {
    timeoutMs: request.timeoutMs,
    timeoutError: () => new CoreFailure(isWaitingForKey ? 'api_key_unavailable' : 'timeout'),
    signal: request.signal,
    abortWhenSettled: true,
  }
  const endsAt = performance.now() + request.timeoutMs
  const attempt = async (signal: AbortSignal): Promise<Received> => {
    isWaitingForKey = true
    const key = await currentKey(core.apiKey)
    isWaitingForKey = false
    signal.throwIfAborted()
    return sendRequest(core, request, { key, text, signal })
  }
  try {
    return await withDeadline(limit, ({ signal }) =>
      repeatWhileBusy({ endsAt, signal }, async () => {
        const received = await attempt(signal)
        const isWrongKey = received.answer.status === WRONG_KEY_STATUS
        return isWrongKey && typeof core.apiKey === 'function' ? attempt(signal) : received
      }),
    )
  } catch (error) {
    request.signal.throwIfAborted()
    throw error instanceof CoreFailure
      ? error
      : new CoreFailure('unreachable', connectionFault(error))
  }
}

/** Returns the first answer that is not a 429, or the last one within the time limit. */
async function repeatWhileBusy(
  { endsAt, signal }: { readonly endsAt: number; readonly signal: AbortSignal },
  send: () => Promise<Received>,
): Promise<CoreAnswer> {
  for (let attempts = 1; ; attempts += 1) {
    const { answer, retryAfterMs: hintMs = 0 } = await send()
    if (answer.status !== BUSY_STATUS) return answer
    const waitMs = hintMs + growingDelayMs(attempts, BUSY_DELAY)
    if (performance.now() + waitMs >= endsAt) return answer
    await pause(waitMs, signal)
  }
}

interface Received {
  readonly answer: CoreAnswer
  readonly retryAfterMs: number | undefined
}

interface Sending {
  readonly key: string
  /** The request body. */
  readonly text: string | undefined
  readonly signal: AbortSignal
}

async function sendRequest(
  core: Core,
  { method, path, headers, maxAnswerBytes }: CoreRequest,
  { key, text, signal }: Sending,
): Promise<Received> {
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
  const answer = toAnswer(response.status, await readResponseBody(response, maxAnswerBytes), key)
  return { answer, retryAfterMs: retryAfterMs(response.headers, Date.now()) }
}

function toAnswer(status: number, bytes: Buffer | undefined, key: string): CoreAnswer {
  if (bytes === undefined) return { status, text: undefined, fault: 'too_large' }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return { status, text: undefined, fault: 'not_utf8' }
  }
  const excerpt = status >= 400 && status <= 499 ? excerptOf(text, key) : ''
  return { status, text, ...(excerpt !== '' && { excerpt }) }
}

const MAX_EXCERPT_LENGTH = 200
const CUT = '…'
/** A token, or the beginning of one: its header is a JSON object, whose base64url begins with `ey`. */
const TOKEN = /\bey[\w-]{4,}[\w.-]*/g

/** Returns an empty text for an HTML page, which does not come from the core. */
function excerptOf(text: string, key: string): string {
  if (text.trimStart().startsWith('<')) return ''
  const safe = text.replaceAll(key, CUT).replace(TOKEN, CUT)
  const line = safe
    .replace(/[^\x20-\x7e…]+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return line.length > MAX_EXCERPT_LENGTH ? line.slice(0, MAX_EXCERPT_LENGTH) + CUT : line
}
