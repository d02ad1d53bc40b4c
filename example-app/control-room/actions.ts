import * as z from 'zod'
import type { Callers } from './calls/callers.js'
import { readInput } from './input/read-input.js'
import type { CoreKeys } from './keys/core-keys.js'
import { ActionError, type Receivers } from './ports.js'
import { type ActionName, type Actions, RECEIVERS } from './protocol.js'

/** What carries actions out; those that take an input of `unknown` check it themselves. */
export interface ActionParts {
  readonly receivers: Receivers
  readonly callers: Callers
  readonly keys: CoreKeys
  readonly load: { set(input: unknown): Promise<object> }
  readonly tour: { play(input: unknown): Promise<Actions['tour-step'][1]> }
}

type Handlers = { readonly [Name in ActionName]: (input: unknown) => Promise<Actions[Name][1]> }

// Of what receivers do, the shapes alone: they say themselves what else is wrong with an order.

const receiver = z.strictObject({ receiver: z.enum(RECEIVERS) })
const holding = receiver.extend({ isHolding: z.boolean() })
const thing = z.strictObject({ kind: z.enum(['caller', 'key', 'token']), value: z.string() })
const denial = thing.extend({
  reason: z.string(),
  seconds: z.number({ error: 'must be a number, or empty' }).exactOptional(),
})
const settlement = z.strictObject({
  record: z.string(),
  fence: z.number(),
  as: z.enum(['freed', 'done']),
  status: z.number({ error: 'must be a number' }).exactOptional(),
  body: z.string().exactOptional(),
})

/**
 * Carries out what the page asks for, by its name. Rejects with an `ActionError` when there is no such
 * action, or its input is not as it should be.
 */
export function actionsOf(parts: ActionParts): (name: string, input: unknown) => Promise<object> {
  const handlers = new Map(Object.entries(handlersOf(parts)))
  return async (name, input) => {
    const handler = handlers.get(name)
    if (handler === undefined) throw new ActionError('There is no such action')
    return handler(input)
  }
}

function handlersOf({ receivers, callers, keys, load, tour }: ActionParts): Handlers {
  return {
    call: callers.call,
    'many-calls': callers.manyCalls,
    'background-load': load.set,
    'rotate-key': keys.rotate,
    'remove-key': keys.remove,
    'slow-core': async (input) => keys.slow(input),
    'take-core-down': async (input) => keys.takeDown(input),
    'hold-next-write': (input) => {
      const { receiver: name, isHolding } = readInput(holding, input)
      return done(receivers.holdNextWrite(name, isHolding))
    },
    'let-go': (input) => done(receivers.letGo(readInput(receiver, input).receiver)),
    'kill-receiver': (input) => done(receivers.kill(readInput(receiver, input).receiver)),
    'start-receiver': (input) => done(receivers.start(readInput(receiver, input).receiver)),
    settle: (input) => receivers.settle(readInput(settlement, input)),
    deny: (input) => done(receivers.deny(readInput(denial, input))),
    allow: (input) => done(receivers.allow(readInput(thing, input))),
    'tour-step': tour.play,
  }
}

const done = (work: Promise<void>): Promise<object> => work.then(() => ({}))
