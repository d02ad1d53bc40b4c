import { OutgoingMessage, ServerResponse } from 'node:http'
import { types } from 'node:util'
import { createStamp, peek, type Stamp, standsFor } from '../base/stamp.js'

/** What a response is sent by, and by what it tells of its life. */
export type ResponseFunctions = Pick<ServerResponse, (typeof NAMES)[number]>

const NAMES = ['writeHead', 'flushHeaders', 'write', 'end', 'destroy', 'emit'] as const

/** What is called instead of the functions of a response, and what it says of itself. */
export type StandInFunctions<State> = Record<(typeof NAMES)[number], StandIn<State>> & {
  writableEnded(state: State): boolean
}
type StandIn<State> = (state: State, args: unknown[]) => unknown
type AnyFunction = (...args: unknown[]) => unknown
type Functions = Record<(typeof NAMES)[number], AnyFunction>

/** Puts functions before those of single responses. */
export interface StandIns<State> {
  /** Does for all responses of the process what can be done before the first one. */
  prepare(): void
  /** `begin` gets the functions as they were found, and gives the state that the others are called with. */
  standBefore(response: ServerResponse, begin: (found: ResponseFunctions) => State): void
}

/**
 * The functions stand in the prototype of all responses, and let every response pass that has no
 * state: V8 gives an object a shape of its own with each property that is added behind Express's
 * change of its prototype, and every access pays for that. A response that has functions of its own
 * already, as outer middlewares put them there, gets its own, and so does one that cannot carry its
 * state.
 */
export function createStandIns<State>(functions: StandInFunctions<State>): StandIns<State> {
  const holds = createStamp<Hold<State>>()
  let shared: Placed | undefined

  function prepare(): Placed {
    shared ??= placeInPrototype(functions, holds)
    return shared
  }

  return {
    prepare,
    standBefore(response, begin) {
      const { found, placed } = prepare()
      const carrier = carrierOf(response)
      const isFree = carrier !== undefined && holds.get(carrier) === undefined
      if (isFree && hasOnly(placed, response)) holds.set(carrier, { response, state: begin(found) })
      else placeBefore(response, functions, begin)
    },
  }
}

/** A function that Node's server makes for each response, and that nobody replaces. */
const CARRIER = '_onPendingData'
const OF_ALL_OTHERS = peek(new OutgoingMessage(), CARRIER)

interface Hold<State> {
  readonly response: ServerResponse
  readonly state: State
}

/** `undefined` for a wrapper of a response, and for one that no server has made. */
function carrierOf(response: ServerResponse): object | undefined {
  if (types.isProxy(response)) return undefined
  const carrier = Object.hasOwn(response, CARRIER) ? peek(response, CARRIER) : undefined
  return typeof carrier === 'function' && carrier !== OF_ALL_OTHERS ? carrier : undefined
}

interface Placed {
  readonly found: ResponseFunctions
  readonly placed: Functions
}

/** A response that has none of its own, and whose prototypes have no others. */
function hasOnly(placed: Functions, response: ServerResponse): boolean {
  const prototype = Object.getPrototypeOf(response) as Functions
  return NAMES.every((name) => !Object.hasOwn(response, name) && prototype[name] === placed[name])
}

function placeInPrototype<State>(
  functions: StandInFunctions<State>,
  holds: Stamp<Hold<State>>,
): Placed {
  const stateOf = (seen: ServerResponse): State | undefined => {
    const hold = holds.get(peek(seen, CARRIER))
    return hold !== undefined && standsFor(seen, hold.response) ? hold.state : undefined
  }
  const { prototype } = ServerResponse
  const found = foundIn(prototype)
  const placed = {} as Functions
  for (const name of NAMES) {
    const standIn = functions[name]
    const value = function (this: ServerResponse, ...args: unknown[]): unknown {
      const state = stateOf(this)
      return state === undefined ? Reflect.apply(found[name], this, args) : standIn(state, args)
    }
    placed[name] = value
    Object.defineProperty(value, 'length', { value: found[name].length })
    const enumerable = descriptorOf(prototype, name)?.enumerable === true
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      enumerable,
      value,
    })
  }
  const ended = descriptorOf(prototype, 'writableEnded')?.get
  Object.defineProperty(prototype, 'writableEnded', {
    configurable: true,
    get(this: ServerResponse) {
      const state = stateOf(this)
      if (state !== undefined) return functions.writableEnded(state)
      return ended === undefined ? undefined : Reflect.apply(ended, this, [])
    },
  })
  return { found, placed }
}

/** The prototype's own functions as they are; those that it inherits, as they are when called. */
function foundIn(prototype: ServerResponse): ResponseFunctions {
  const found = Object.create(Object.getPrototypeOf(prototype)) as Functions
  for (const name of NAMES) {
    if (Object.hasOwn(prototype, name)) found[name] = prototype[name] as Functions[typeof name]
  }
  return found as unknown as ResponseFunctions
}

function placeBefore<State>(
  response: ServerResponse,
  functions: StandInFunctions<State>,
  begin: (found: ResponseFunctions) => State,
): void {
  const { writeHead, flushHeaders, write, end, destroy, emit } = response
  const state = begin({ writeHead, flushHeaders, write, end, destroy, emit })
  for (const name of NAMES) {
    const value = (...args: unknown[]): unknown => functions[name](state, args)
    Object.assign(response, { [name]: value })
  }
  const get = (): boolean => functions.writableEnded(state)
  Object.defineProperty(response, 'writableEnded', { configurable: true, get })
}

function descriptorOf(object: object | null, name: string): PropertyDescriptor | undefined {
  for (let at = object; at !== null; at = Object.getPrototypeOf(at)) {
    const descriptor = Object.getOwnPropertyDescriptor(at, name)
    if (descriptor !== undefined) return descriptor
  }
  return undefined
}
