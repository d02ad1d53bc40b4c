import { growingDelayMs } from '../../base/back-off.js'
import { connectionFault } from '../../base/connection-fault.js'
import { pause } from '../../base/pause.js'
import { readBody } from '../../base/response-body.js'
import { retryAfterMs } from '../../base/retry-after.js'
import { withinTimeLimit } from '../../base/time-limit.js'
import { type ApiKey, currentKey } from './api-key.js'
import { operationUrl } from './core-address.js'
import { CoreFailure } from './core-failure.js'

/** The identity core, and how it is reached. */
export interface Core {
  readonly baseUrl: string
  readonly apiKey: ApiKey
  readonly fetch: typeof globalThis.fetch
}

/** One operation of the core. */
export interface CoreRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** From a slash on, with a query where there is one. */
  readonly path: string
  /** Besides `api-key`, and `content-type` where there is a body. */
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: object
  /** Milliseconds for all of it: asking for the key, the answer's body, repetitions and their waits. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  /** Ends the exchange; its reason is what the caller gets. */
  readonly signal: AbortSignal
}

export type CoreAnswer =
  /** `excerpt`: the beginning of the text of a 4xx, for messages: without the key and without tokens. */
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
 * What the core answers, whatever its status. After a 401 a key function is asked once more and the
 * request repeated: the key may have been rotated. After a 429, which did nothing, it is repeated for as
 * long as the time limit allows. Redirects are not followed.
 *
 * @throws CoreFailure when there is no answer.
 */
export async function askCore(core: Core, request: CoreRequest): Promise<CoreAnswer> {
  // Once, and outside: what cannot be JSON is the caller's mistake, not the core's.
  const text = request.body === undefined ? undefined : JSON.stringify(request.body)
  let isAskingForKey = true
  const limit = {
    ...request,
    timedOut: () => new CoreFailure(isAskingForKey ? 'api_key_unavailable' : 'timeout'),
  }
  const endsAt = performance.now() + request.timeoutMs
  const attempt = async (signal: AbortSignal): Promise<Received> => {
    isAskingForKey = true
    const key = await currentKey(core.apiKey)
    isAskingForKey = false
    signal.throwIfAborted()
    return converse(core, request, { key, text, signal })
  }
  try {
    return await withinTimeLimit(limit, async (signal) =>
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

/** Gives the first answer that is not a 429, or the last one that there is time for. */
async function repeatWhileBusy(
  { endsAt, signal }: { readonly endsAt: number; readonly signal: AbortSignal },
  attempt: () => Promise<Received>,
): Promise<CoreAnswer> {
  for (let attempts = 1; ; attempts += 1) {
    const { answer, retryAfterMs = 0 } = await attempt()
    if (answer.status !== BUSY_STATUS) return answer
    const waitMs = retryAfterMs + growingDelayMs(attempts, BUSY_DELAY)
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
  /** The body. */
  readonly text: string | undefined
  readonly signal: AbortSignal
}

async function converse(
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
  // A `fetch` of the user's own may have followed one all the same.
  if (response.redirected) throw new CoreFailure('unreachable')
  const answer = answerOf(response.status, await readBody(response, maxAnswerBytes), key)
  return { answer, retryAfterMs: retryAfterMs(response.headers, Date.now()) }
}

function answerOf(status: number, bytes: Buffer | undefined, key: string): CoreAnswer {
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
/** A token, or the beginning of one: its header is a JSON object, whose base64url begins like this. */
const TOKEN = /\bey[\w-]{4,}[\w.-]*/g

/** Empty for a page, which is not the core's. */
function excerptOf(text: string, key: string): string {
  if (text.trimStart().startsWith('<')) return ''
  const safe = text.replaceAll(key, CUT).replace(TOKEN, CUT)
  const line = safe
    .replace(/[^\x20-\x7e…]+/g, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return line.length > MAX_EXCERPT_LENGTH ? line.slice(0, MAX_EXCERPT_LENGTH) + CUT : line
}
