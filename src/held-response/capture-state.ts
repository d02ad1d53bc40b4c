import type { ServerResponse } from 'node:http'
import type { Callback } from './chunk.js'
import { watchDrain } from './drain.js'
import type { StoredResult } from './result.js'
import { Sender } from './sender.js'
import type { ResponseFunctions } from './stand-in.js'

/** Who is told what becomes of a response. What it returns need not resolve, only settle. */
export interface CaptureObserver {
  /** The whole response; no byte of it is sent before the promise settles. */
  complete(result: StoredResult): Promise<void>
  /** It cannot be held back; its first byte waits for the promise. */
  flow(): Promise<void>
  /** A response that flowed has ended or was cut off; its last byte waits for the promise. */
  flowed(): Promise<void>
  /** It was cut off while it was held back. */
  cutOff(): void
}

export interface CaptureOptions {
  readonly response: ServerResponse
  /** The largest body that is held back. */
  readonly maxBytes: number
  readonly isHead: boolean
}

/** How far a response has come. */
export interface Capture extends CaptureOptions {
  readonly observer: CaptureObserver
  readonly sender: Sender
  /** Wakes those who wait for the response to take more. */
  readonly drain: () => void
  /**
   * `held`: nothing is sent. `opening`: too large or an event stream, waiting for the record to say
   * so. `flowing`: everything passes.
   */
  phase: 'held' | 'opening' | 'flowing'
  head: Omit<StoredResult, 'body'> | undefined
  chunks: { readonly octets: Uint8Array; readonly callback: Callback | undefined }[]
  size: number
  /** The handler is about to end it. */
  isEnding: boolean
  /** Nothing more comes from the handler. */
  isEnded: boolean
  isCutOff: boolean
  isPipedInto: boolean
  endCallback: Callback | undefined
  wantsFlush: boolean
  wantsDrain: boolean
}

export function captureOf(
  { response, maxBytes, isHead }: CaptureOptions,
  observer: CaptureObserver,
  found: ResponseFunctions,
): Capture {
  return {
    response,
    maxBytes,
    isHead,
    observer,
    sender: new Sender(response, found),
    drain: watchDrain(response),
    phase: 'held',
    head: undefined,
    chunks: [],
    size: 0,
    isEnding: false,
    isEnded: false,
    isCutOff: false,
    isPipedInto: false,
    endCallback: undefined,
    wantsFlush: false,
    wantsDrain: false,
  }
}

export const isHeld = ({ phase }: Capture): boolean => phase === 'held'

export const hasNoBody = ({ head, isHead, response }: Capture): boolean => {
  const status = head?.status ?? response.statusCode
  return isHead || status === 204 || status === 304 || status < 200
}
