import { ServerResponse } from 'node:http'

const NAMES = [
  'setHeader',
  'setHeaders',
  'appendHeader',
  'removeHeader',
  'writeHead',
  'flushHeaders',
  'write',
  'end',
  'destroy',
] as const
type Name = (typeof NAMES)[number]

type AnyFunction = (...args: unknown[]) => unknown

/** The functions by which a response is made and sent. */
export type SendingFunctions = Readonly<Record<Name, AnyFunction>>

/** The functions that are called instead, with the state of their response. */
export type Interceptors<State> = Readonly<Record<Name, (state: State, args: unknown[]) => unknown>>

/** The callback of a `write` or an `end`. */
export type Callback = (error?: Error | null) => void

export interface Intercepted {
  /** The functions that the response had before. */
  readonly found: SendingFunctions
}

/**
 * Returns a function that gives one response functions of its own, which call `interceptors` with
 * `state`. They are made once, for all responses: a closure for each response would cost a write
 * more than everything else here. Nothing but the one response is changed.
 */
export function createInterception<State extends Intercepted>(
  interceptors: Interceptors<State>,
): (response: ServerResponse, begin: (found: SendingFunctions) => State) => State {
  const STATE = Symbol('express-service-auth response')
  type Carrier = Record<Name, AnyFunction> & { [STATE]?: State }

  const own = {} as Record<Name, AnyFunction>
  for (const name of NAMES) {
    own[name] = function (this: Carrier, ...args: unknown[]): unknown {
      const state = this[STATE]
      // Other code has put our function on a response that is not buffered.
      if (state === undefined) return Reflect.apply(ServerResponse.prototype[name], this, args)
      return interceptors[name](state, args)
    }
  }

  return (response, begin) => {
    const carrier = response as unknown as Carrier
    const state = begin(functionsOf(carrier, own, carrier[STATE]?.found))
    carrier[STATE] = state
    carrier.setHeader = own.setHeader
    carrier.setHeaders = own.setHeaders
    carrier.appendHeader = own.appendHeader
    carrier.removeHeader = own.removeHeader
    carrier.writeHead = own.writeHead
    carrier.flushHeaders = own.flushHeaders
    carrier.write = own.write
    carrier.end = own.end
    carrier.destroy = own.destroy
    return state
  }
}

/** A copy of a held response has our functions already: what stood before them there is meant. */
function functionsOf(
  carrier: Record<Name, AnyFunction>,
  own: SendingFunctions,
  ofOriginal: SendingFunctions | undefined,
): SendingFunctions {
  const { setHeader, setHeaders, appendHeader, removeHeader } = carrier
  const { writeHead, flushHeaders, write, end, destroy } = carrier
  const ofHead = { setHeader, setHeaders, appendHeader, removeHeader, writeHead, flushHeaders }
  const found = { ...ofHead, write, end, destroy }
  if (ofOriginal === undefined) return found
  for (const name of NAMES) if (found[name] === own[name]) found[name] = ofOriginal[name]
  return found
}

/** Sends a response by the functions that it had before it was held back. */
export interface Sending {
  readonly response: ServerResponse
  readonly found: SendingFunctions
  /**
   * How many of these functions are at work. What an outer middleware calls meanwhile, by way of the
   * response, is meant for them.
   */
  depth: number
  /** Sending has failed. */
  failed(error: unknown): void
}

/** Calls one of the functions. */
export const call = (
  { response, found }: Sending,
  name: keyof SendingFunctions,
  args: readonly unknown[],
): unknown => Reflect.apply(found[name], response, args)

/** Calls one of the functions that send something. */
export function send(
  sending: Sending,
  name: 'writeHead' | 'flushHeaders' | 'write' | 'end',
  args: readonly unknown[],
): unknown {
  sending.depth += 1
  try {
    return call(sending, name, args)
  } finally {
    sending.depth -= 1
  }
}

/** Sends once the promise is settled. */
export function sendAfter(sending: Sending, settled: Promise<void>, deliver: () => void): void {
  const deliverOrFail = (): void => {
    try {
      deliver()
    } catch (error) {
      sending.failed(error)
    }
  }
  settled.then(deliverOrFail, deliverOrFail)
}
