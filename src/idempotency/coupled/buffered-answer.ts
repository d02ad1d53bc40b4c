import type { ServerResponse } from 'node:http'
import { SignalOf } from '../../base/lazy-signal.js'
import { type BufferObserver, bufferResponse } from '../buffered-response/buffer-response.js'
import { takeSnapshot } from '../buffered-response/discard.js'
import { encodeResult } from '../buffered-response/stored-result.js'
import type { IdempotencyContext } from '../idempotency-context.js'
import type { CoupledEnding, CoupledRun } from './coupled-store.js'

interface CoupledRunOptions {
  readonly run: CoupledRun
  /** The caller's key, unquoted. Without it the answer is not stored. */
  readonly key: string | undefined
  readonly response: ServerResponse
  /** The largest body that is stored. */
  readonly maxBytes: number
  readonly storedHeaders: ReadonlySet<string>
  /** Called with the error if the answer could not be sent. */
  onUnsent(error: unknown): void
}

/** The answer of a handler that runs inside a transaction, buffered until the transaction has ended. */
export interface BufferedAnswer {
  /** `undefined` if the request has no key. */
  readonly idempotency: IdempotencyContext | undefined
  /** Rolls the transaction back at the end, and stores nothing. */
  release(): void
  /** Resolves once the handler has answered, or can no longer answer. */
  readonly ending: Promise<CoupledEnding>
  /** The status of the answer; `undefined` while there is none. */
  readonly status: number | undefined
  readonly isReleased: boolean
  /** Whether the complete answer was buffered, so that it can be stored. */
  readonly isStorable: boolean
  /** Lets the answer be sent, once the handler has answered. */
  send(): void
  /** Discards the answer. Returns `false` if a byte of it has been sent, or the client has disconnected. */
  discard(): boolean
}

/** Buffers the answer of a run's handler. */
export function bufferAnswer(options: CoupledRunOptions): BufferedAnswer {
  const { run, key, response, maxBytes, storedHeaders, onUnsent } = options
  const isHead = response.req.method === 'HEAD'
  let resolveEnding: (ending: CoupledEnding) => void
  const ending = new Promise<CoupledEnding>((resolve) => {
    resolveEnding = resolve
  })

  /** Lets the buffered response be sent. `undefined` until the handler has answered. */
  let allowSending: (() => void) | undefined

  /** Ends the handler's use of the transaction. The response waits for the promise, until `send` is called. */
  function end(answerEnding: CoupledEnding): Promise<void> {
    run.answered()
    const isAllowed = new Promise<void>((resolve) => {
      allowSending = resolve
    })
    resolveEnding(answer.isReleased ? { type: 'roll_back' } : answerEnding)
    return isAllowed
  }

  const observer: BufferObserver = {
    onComplete(result) {
      const { status } = result
      const isKept = key !== undefined && !answer.isReleased
      answer.status = status
      answer.isStorable = true
      return end(endingOf({ status, result: isKept ? encodeResult(result) : undefined }))
    },
    onStream() {
      answer.status = response.statusCode
      return end(endingOf({ status: answer.status, result: undefined }))
    },
    onAbort() {
      void end({ type: 'roll_back' })
    },
    onSendError: onUnsent,
  }
  const initialState = takeSnapshot(response)
  const buffered = bufferResponse({ response, isHead, maxBytes, storedHeaders }, observer)
  const release = (): void => {
    answer.isReleased = true
  }
  const contextWith = (callerKey: string): IdempotencyContext =>
    Object.assign(new SignalOf(run), { key: callerKey, fence: run.fence, release })
  const answer = {
    idempotency: key === undefined ? undefined : contextWith(key),
    release,
    ending,
    status: undefined as number | undefined,
    isReleased: false,
    isStorable: false,
    send: () => allowSending?.(),
    discard: () => buffered.discard(initialState),
  }
  return answer
}

/** A handler's answer: the status, and the encoded result if it can be stored. */
interface HandlerAnswer {
  readonly status: number
  readonly result: Uint8Array | undefined
}

const TOO_MANY_REQUESTS = 429

/**
 * Decides how the transaction ends: by the status alone, because frameworks turn thrown errors into
 * answers.
 */
export function endingOf({ status, result }: HandlerAnswer): CoupledEnding {
  if (status < 400) return { type: 'commit', result }
  if (status < 500 && status !== TOO_MANY_REQUESTS) return { type: 'refuse', result }
  return { type: 'roll_back' }
}
