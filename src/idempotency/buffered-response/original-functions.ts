import type { ServerResponse } from 'node:http'
import { http } from '../../base/node-http.js'

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

/** The functions by which a response is built and sent. */
export type ResponseFunctions = Readonly<Record<Name, AnyFunction>>

/** The functions that are called instead, with the state of their response. */
type Replacements<State> = Readonly<Record<Name, (state: State, args: unknown[]) => unknown>>

/** The callback of a `write` or an `end`. */
export type Callback = (error?: Error | null) => void

interface ReplacedResponse {
  /** The functions that the response had before they were replaced. */
  readonly originals: ResponseFunctions
}

/**
 * Returns a function that replaces the functions of one response by calls of `replacements` with its
 * state. The functions are created once for all responses, because closures for each response would cost
 * more than everything else here. Only that response is changed.
 */
export function createReplacer<State extends ReplacedResponse>(
  replacements: Replacements<State>,
): (response: ServerResponse, createState: (originals: ResponseFunctions) => State) => State {
  const STATE = Symbol('express-service-auth response')
  type Carrier = Record<Name, AnyFunction> & { [STATE]?: State }

  const ourFunctions = {} as Record<Name, AnyFunction>
  for (const name of NAMES) {
    ourFunctions[name] = function (this: Carrier, ...args: unknown[]): unknown {
      const state = this[STATE]
      // Other code has put our function on a response that is not buffered.
      if (state === undefined) return Reflect.apply(http.ServerResponse.prototype[name], this, args)
      return replacements[name](state, args)
    }
  }

  return (response, createState) => {
    const carrier = response as unknown as Carrier
    const state = createState(originalsOf(carrier, ourFunctions, carrier[STATE]?.originals))
    carrier[STATE] = state
    carrier.setHeader = ourFunctions.setHeader
    carrier.setHeaders = ourFunctions.setHeaders
    carrier.appendHeader = ourFunctions.appendHeader
    carrier.removeHeader = ourFunctions.removeHeader
    carrier.writeHead = ourFunctions.writeHead
    carrier.flushHeaders = ourFunctions.flushHeaders
    carrier.write = ourFunctions.write
    carrier.end = ourFunctions.end
    carrier.destroy = ourFunctions.destroy
    return state
  }
}

/** A copy of a buffered response already has our functions, so it gets the originals of the copied response. */
function originalsOf(
  carrier: Record<Name, AnyFunction>,
  ourFunctions: ResponseFunctions,
  copiedOriginals: ResponseFunctions | undefined,
): ResponseFunctions {
  const { setHeader, setHeaders, appendHeader, removeHeader } = carrier
  const { writeHead, flushHeaders, write, end, destroy } = carrier
  const ofHead = { setHeader, setHeaders, appendHeader, removeHeader, writeHead, flushHeaders }
  const originals = { ...ofHead, write, end, destroy }
  if (copiedOriginals === undefined) return originals
  for (const name of NAMES)
    if (originals[name] === ourFunctions[name]) originals[name] = copiedOriginals[name]
  return originals
}

/** A response that is sent by its original functions. */
export interface Sender {
  readonly response: ServerResponse
  readonly originals: ResponseFunctions
  /**
   * How many original functions are running. An outer middleware that calls the response meanwhile means
   * the original functions.
   */
  callsInProgress: number
  /** Called if sending fails. */
  onError(error: unknown): void
}

export const callOriginal = (
  { response, originals }: Sender,
  name: keyof ResponseFunctions,
  args: readonly unknown[],
): unknown => Reflect.apply(originals[name], response, args)

export function sendByOriginal(
  sender: Sender,
  name: 'writeHead' | 'flushHeaders' | 'write' | 'end',
  args: readonly unknown[],
): unknown {
  sender.callsInProgress += 1
  try {
    return callOriginal(sender, name, args)
  } finally {
    sender.callsInProgress -= 1
  }
}

/** Calls `work` once the promise is settled. */
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
