/**
 * How far a response has come.
 *
 * - `held`: nothing is sent; the handler is at work.
 * - `dropped`: nothing is sent, and nobody is left to end it. If somebody does, that answer counts.
 * - `opening`: it cannot be held back; its first byte waits for the record to say so.
 * - `closing`: the same, and nothing more comes from the handler.
 * - `flowing`: everything passes.
 * - `ended`: nothing more comes from the handler.
 * - `delivered`: the functions that stood before ours have been given its end.
 */
export type Phase = 'held' | 'dropped' | 'opening' | 'closing' | 'flowing' | 'ended' | 'delivered'

/**
 * - `outgrown`: the body is too large, or the response an event stream.
 * - `recorded`: the record says that the response flows.
 * - `finished`: the handler has ended the response.
 * - `interrupted`: nobody is left who could end it.
 * - `disconnected`: the connection has gone.
 * - `destroyed`: the handler has destroyed the response.
 * - `delivered`: its end has been passed on.
 */
export type PhaseEvent =
  | 'outgrown'
  | 'recorded'
  | 'finished'
  | 'interrupted'
  | 'disconnected'
  | 'destroyed'
  | 'delivered'

type Transitions = Readonly<Partial<Record<PhaseEvent, Phase>>>

/** What is not listed changes nothing: a caller that hangs up, for one, leaves a held handler at work. */
const TRANSITIONS: Readonly<Record<Phase, Transitions>> = {
  held: {
    outgrown: 'opening',
    finished: 'ended',
    interrupted: 'dropped',
    destroyed: 'ended',
  },
  dropped: { outgrown: 'opening', finished: 'ended', destroyed: 'ended' },
  opening: {
    recorded: 'flowing',
    finished: 'closing',
    disconnected: 'closing',
    destroyed: 'closing',
  },
  closing: { recorded: 'ended' },
  flowing: { finished: 'ended', disconnected: 'ended', destroyed: 'ended' },
  ended: { delivered: 'delivered' },
  delivered: {},
}

export const advance = (phase: Phase, event: PhaseEvent): Phase =>
  TRANSITIONS[phase][event] ?? phase

/** Whether all of the response is still in our hands. */
export const isHeld = (phase: Phase): boolean => phase === 'held' || phase === 'dropped'

/** Whether the handler may still write. */
export const isOpen = (phase: Phase): boolean =>
  phase !== 'closing' && phase !== 'ended' && phase !== 'delivered'
