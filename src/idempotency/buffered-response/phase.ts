/**
 * How far a response has come.
 *
 * - `held`: nothing is sent; the handler is at work.
 * - `dropped`: nothing is sent, and nothing is left that would end it. If something does, that answer counts.
 * - `opening`: it cannot be held back; its first byte waits for the record to say so.
 * - `closing`: the same, and the handler has ended it.
 * - `lost`: the same, and it was broken off before its first byte.
 * - `flowing`: everything passes.
 * - `ended`: the handler has ended it; all of it waits for the record.
 * - `ending`: the handler has ended what flows; its end waits for the record.
 * - `delivered`: its end has been passed on.
 * - `over`: it was broken off.
 * - `discarded`: what was held has been thrown away; the app answers again.
 */
export type Phase =
  | 'held'
  | 'dropped'
  | 'opening'
  | 'closing'
  | 'lost'
  | 'flowing'
  | 'ended'
  | 'ending'
  | 'delivered'
  | 'over'
  | 'discarded'

/**
 * - `outgrown`: the body is too large, or the response an event stream.
 * - `recorded`: the record says that the response flows.
 * - `finished`: the handler has ended the response.
 * - `delivered`: its end has been passed on.
 * - `interrupted`: nothing is left that could end it.
 * - `disconnected`: the connection has gone.
 * - `destroyed`: the handler has destroyed the response.
 * - `discarded`: the app throws away what is held.
 */
export type PhaseEvent =
  | 'outgrown'
  | 'recorded'
  | 'finished'
  | 'delivered'
  | 'interrupted'
  | 'disconnected'
  | 'destroyed'
  | 'discarded'

type Transitions = Readonly<Partial<Record<PhaseEvent, Phase>>>

/** Transitions. An event that is not listed changes nothing: a handler works on after its caller hung up. */
const TRANSITIONS: Readonly<Record<Phase, Transitions>> = {
  held: {
    outgrown: 'opening',
    finished: 'ended',
    interrupted: 'dropped',
    destroyed: 'over',
    discarded: 'discarded',
  },
  dropped: {
    outgrown: 'opening',
    finished: 'ended',
    destroyed: 'over',
    discarded: 'discarded',
  },
  opening: {
    recorded: 'flowing',
    finished: 'closing',
    disconnected: 'lost',
    destroyed: 'lost',
    discarded: 'discarded',
  },
  closing: { recorded: 'ending', discarded: 'discarded' },
  lost: { recorded: 'over', discarded: 'discarded' },
  flowing: { finished: 'ending', disconnected: 'over', destroyed: 'over' },
  ended: { delivered: 'delivered', discarded: 'discarded' },
  ending: { delivered: 'delivered' },
  delivered: {},
  over: {},
  discarded: {},
}

export const advance = (phase: Phase, event: PhaseEvent): Phase =>
  TRANSITIONS[phase][event] ?? phase

/** Whether all of the response is still in our hands. */
export const isHeld = (phase: Phase): boolean => phase === 'held' || phase === 'dropped'

/** Whether the handler may still write. */
export const isOpen = (phase: Phase): boolean =>
  isHeld(phase) || phase === 'opening' || phase === 'flowing'

/** Whether the handler has ended the response, and it is yet to be sent. */
export const isDue = (phase: Phase): boolean =>
  phase === 'ended' || phase === 'closing' || phase === 'ending'
