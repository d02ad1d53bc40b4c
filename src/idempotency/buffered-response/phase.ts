/**
 * The phase of a buffered response.
 *
 * - `buffering`: nothing is sent; the handler is at work.
 * - `orphaned`: nothing is sent, and whatever wrote it (a stream piped into it, say) stopped before its end. If it still
 *   ends, that answer counts.
 * - `switching`: it cannot be buffered; its first byte waits until the store has recorded that it is not stored.
 * - `switching_ended`: like `switching`, and the handler has ended it.
 * - `switching_aborted`: like `switching`, and it was aborted before its first byte.
 * - `streaming`: everything is passed on.
 * - `ended`: the handler has ended it; all of it waits until it is stored.
 * - `streaming_ended`: the handler has ended it while it streamed; its end is being passed on.
 * - `sent`: its end has been passed on.
 * - `aborted`: the handler destroyed it, or its connection closed while it streamed.
 * - `discarded`: the buffered part was discarded, because COMMIT failed, say; the app answers again.
 */
export type Phase =
  | 'buffering'
  | 'orphaned'
  | 'switching'
  | 'switching_ended'
  | 'switching_aborted'
  | 'streaming'
  | 'ended'
  | 'streaming_ended'
  | 'sent'
  | 'aborted'
  | 'discarded'

/**
 * - `unbufferable`: the body is too large, or the response is an event stream.
 * - `recorded`: the store has recorded that the response is not stored.
 * - `finished`: the handler has ended the response.
 * - `sent`: its end has been passed on.
 * - `interrupted`: whatever wrote it stopped before its end.
 * - `disconnected`: the connection is gone.
 * - `destroyed`: the handler has destroyed the response.
 * - `discarded`: the app discards the buffered part.
 */
export type PhaseEvent =
  | 'unbufferable'
  | 'recorded'
  | 'finished'
  | 'sent'
  | 'interrupted'
  | 'disconnected'
  | 'destroyed'
  | 'discarded'

type Transitions = Readonly<Partial<Record<PhaseEvent, Phase>>>

/** An event that is not listed changes nothing, because a handler continues after its client disconnects. */
const TRANSITIONS: Readonly<Record<Phase, Transitions>> = {
  buffering: {
    unbufferable: 'switching',
    finished: 'ended',
    interrupted: 'orphaned',
    destroyed: 'aborted',
    discarded: 'discarded',
  },
  orphaned: {
    unbufferable: 'switching',
    finished: 'ended',
    destroyed: 'aborted',
    discarded: 'discarded',
  },
  switching: {
    recorded: 'streaming',
    finished: 'switching_ended',
    disconnected: 'switching_aborted',
    destroyed: 'switching_aborted',
    discarded: 'discarded',
  },
  switching_ended: { recorded: 'streaming_ended', discarded: 'discarded' },
  switching_aborted: { recorded: 'aborted', discarded: 'discarded' },
  streaming: { finished: 'streaming_ended', disconnected: 'aborted', destroyed: 'aborted' },
  ended: { sent: 'sent', discarded: 'discarded' },
  streaming_ended: { sent: 'sent' },
  sent: {},
  aborted: {},
  discarded: {},
}

export const advance = (phase: Phase, event: PhaseEvent): Phase =>
  TRANSITIONS[phase][event] ?? phase

export const isBuffering = (phase: Phase): boolean => phase === 'buffering' || phase === 'orphaned'

/** Whether the handler may still write. */
export const isWritable = (phase: Phase): boolean =>
  isBuffering(phase) || phase === 'switching' || phase === 'streaming'

/** Whether the handler has ended the response, and it is yet to be sent. */
export const isEndedUnsent = (phase: Phase): boolean =>
  phase === 'ended' || phase === 'switching_ended' || phase === 'streaming_ended'
