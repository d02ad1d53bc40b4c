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
export type ResponseFunctions = Readonly<Record<Name, AnyFunction>>

/** The functions that are called instead, with the state of their response. */
export type Replacements<State> = Readonly<Record<Name, (state: State, args: unknown[]) => unknown>>

/** The callback of a `write` or an `end`. */
export type Callback = (error?: Error | null) => void

export interface ReplacedResponse {
  /** The functions that the response had before. */
  readonly originals: ResponseFunctions
}

/**
 * Returns a function that gives one response functions of its own, which call `interceptors` with
 * `state`. They are made once, for all responses: a closure for each response would cost a write
 * more than everything else here. Nothing but the one response is changed.
 */
export function createReplacer<State extends ReplacedResponse>(
  replacements: Replacements<State>,
): (response: ServerResponse, createState: (originals: ResponseFunctions) => State) => State {
  const STATE = Symbol('express-service-auth response')
  type Carrier = Record<Name, AnyFunction> & { [STATE]?: State }

  const own = {} as Record<Name, AnyFunction>
  for (const name of NAMES) {
    own[name] = function (this: Carrier, ...args: unknown[]): unknown {
      const state = this[STATE]
      // Other code has put our function on a response that is not buffered.
      if (state === undefined) return Reflect.apply(ServerResponse.prototype[name], this, args)
      return replacements[name](state, args)
    }
  }

  return (response, createState) => {
    const carrier = response as unknown as Carrier
    const state = createState(originalsOf(carrier, own, carrier[STATE]?.originals))
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
function originalsOf(
  carrier: Record<Name, AnyFunction>,
  own: ResponseFunctions,
  copiedOriginals: ResponseFunctions | undefined,
): ResponseFunctions {
  const { setHeader, setHeaders, appendHeader, removeHeader } = carrier
  const { writeHead, flushHeaders, write, end, destroy } = carrier
  const ofHead = { setHeader, setHeaders, appendHeader, removeHeader, writeHead, flushHeaders }
  const originals = { ...ofHead, write, end, destroy }
  if (copiedOriginals === undefined) return originals
  for (const name of NAMES)
    if (originals[name] === own[name]) originals[name] = copiedOriginals[name]
  return originals
}

/** Sends a response by the functions that it had before it was held back. */
export interface Sender {
  readonly response: ServerResponse
  readonly originals: ResponseFunctions
  /**
   * How many of these functions are at work. What an outer middleware calls meanwhile, by way of the
   * response, is meant for them.
   */
  callsUnderWay: number
  /** Sending has failed. */
  onError(error: unknown): void
}

/** Calls one of the functions. */
export const callOriginal = (
  { response, originals }: Sender,
  name: keyof ResponseFunctions,
  args: readonly unknown[],
): unknown => Reflect.apply(originals[name], response, args)

/** Calls one of the functions that send something. */
export function sendByOriginal(
  sender: Sender,
  name: 'writeHead' | 'flushHeaders' | 'write' | 'end',
  args: readonly unknown[],
): unknown {
  sender.callsUnderWay += 1
  try {
    return callOriginal(sender, name, args)
  } finally {
    sender.callsUnderWay -= 1
  }
}

/** Sends once the promise is settled. */
export function sendAfter(sender: Sender, settled: Promise<void>, work: () => void): void {
  const runOrFail = (): void => {
    try {
      work()
    } catch (error) {
      sender.onError(error)
    }
  }
  settled.then(runOrFail, runOrFail)
}
