/**
 * How far a response has come.
 *
 * - `held`: nothing is sent; the handler is at work.
 * - `dropped`: nothing is sent, and nobody is left to end it. If somebody does, that answer counts.
 * - `opening`: it cannot be held back; its first byte waits for the record to say so.
 * - `closing`: the same, and nothing more comes from the handler.
 * - `flowing`: everything passes.
 * - `ended`: nothing more comes from the handler.
 */
export type Phase = 'held' | 'dropped' | 'opening' | 'closing' | 'flowing' | 'ended'

/**
 * - `outgrown`: the body is too large, or the response an event stream.
 * - `recorded`: the record says that the response flows.
 * - `finished`: the handler has ended the response.
 * - `interrupted`: nobody is left who could end it.
 * - `disconnected`: the connection has gone.
 * - `destroyed`: the handler has destroyed the response.
 */
export type PhaseEvent =
  | 'outgrown'
  | 'recorded'
  | 'finished'
  | 'interrupted'
  | 'disconnected'
  | 'destroyed'

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
  ended: {},
}

export const advance = (phase: Phase, event: PhaseEvent): Phase =>
  TRANSITIONS[phase][event] ?? phase

/** Whether all of the response is still in our hands. */
export const isHeld = (phase: Phase): boolean => phase === 'held' || phase === 'dropped'

/** Whether the handler may still write. */
export const isOpen = (phase: Phase): boolean => phase !== 'ended' && phase !== 'closing'
