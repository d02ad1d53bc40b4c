import { readBody } from '../base/response-body.js'
import { withinTimeLimit } from '../base/time-limit.js'
import { operationUrl } from './address.js'
import { type ApiKey, currentKey } from './api-key.js'
import { CoreFailure, systemCodeOf } from './failure.js'

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
  /** Milliseconds for all of it: asking for the key, the answer's body, the repetition. */
  readonly timeoutMs: number
  readonly maxAnswerBytes: number
  /** Ends the exchange; its reason is what the caller gets. */
  readonly signal: AbortSignal
}

export interface CoreAnswer {
  readonly status: number
  /** `undefined` when it is larger than `maxAnswerBytes`, or not UTF-8. */
  readonly text: string | undefined
}

const WRONG_KEY_STATUS = 401

/**
 * What the core answers, whatever its status. After a 401 a key function is asked once more and the
 * request repeated: the key may have been rotated. Redirects are not followed.
 *
 * @throws CoreFailure when there is no answer.
 */
export async function askCore(core: Core, request: CoreRequest): Promise<CoreAnswer> {
  let isAskingForKey = true
  const limit = {
    ...request,
    timedOut: () => new CoreFailure(isAskingForKey ? 'api_key_unavailable' : 'timeout'),
  }
  const attempt = async (signal: AbortSignal): Promise<CoreAnswer> => {
    isAskingForKey = true
    const key = await currentKey(core.apiKey)
    isAskingForKey = false
    signal.throwIfAborted()
    return converse(core, request, { key, signal })
  }
  try {
    return await withinTimeLimit(limit, async (signal) => {
      const answer = await attempt(signal)
      const mayBeRotated = answer.status === WRONG_KEY_STATUS && typeof core.apiKey === 'function'
      return mayBeRotated ? attempt(signal) : answer
    })
  } catch (error) {
    request.signal.throwIfAborted()
    throw error instanceof CoreFailure ? error : new CoreFailure('unreachable', systemCodeOf(error))
  }
}

async function converse(
  core: Core,
  request: CoreRequest,
  { key, signal }: { readonly key: string; readonly signal: AbortSignal },
): Promise<CoreAnswer> {
  const { method, body } = request
  const response = await core.fetch(operationUrl(core.baseUrl, request.path), {
    method,
    headers: {
      ...request.headers,
      'api-key': key,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    redirect: 'manual',
    signal,
  })
  // A `fetch` of the user's own may have followed one all the same.
  if (response.redirected) throw new CoreFailure('unreachable')
  return { status: response.status, text: textOf(await readBody(response, request.maxAnswerBytes)) }
}

function textOf(octets: Buffer | undefined): string | undefined {
  try {
    return octets && new TextDecoder('utf-8', { fatal: true }).decode(octets)
  } catch {
    return undefined
  }
}
