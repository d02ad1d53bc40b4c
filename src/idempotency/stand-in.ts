import { ServerResponse } from 'node:http'

/** What a response is sent by, and by what it tells of its life. */
export type ResponseFunctions = Pick<ServerResponse, (typeof NAMES)[number]>

const NAMES = ['writeHead', 'flushHeaders', 'write', 'end', 'destroy', 'emit'] as const

/** What is called instead of the functions of a response, and what it says of itself. */
export type StandIns<State> = Record<(typeof NAMES)[number], StandIn<State>> & {
  writableEnded(state: State): boolean
}
type StandIn<State> = (state: State, args: unknown[]) => unknown
type AnyFunction = (...args: unknown[]) => unknown
type Functions = Record<(typeof NAMES)[number], AnyFunction>

/**
 * Puts functions before those of single responses. `begin` gets the functions as they were found and
 * gives the state that the functions before them are called with.
 *
 * They stand in the prototype of all responses, from the first one on, and let every response pass
 * that has no state: V8 gives an object a shape of its own with each property that is added behind
 * Express's change of its prototype, and every access pays for that. A response that has functions of
 * its own already, as outer middlewares put them there, gets its own.
 */
export function createStandIn<State>(
  standIns: StandIns<State>,
): (response: ServerResponse, begin: (found: ResponseFunctions) => State) => void {
  const STATE = Symbol('stand-in')
  type Held = { [STATE]?: State }
  const stateOf = (response: object): State | undefined => (response as Held)[STATE]
  let shared: { found: ResponseFunctions; placed: Functions } | undefined

  return (response, begin) => {
    shared ??= placeInPrototype(standIns, stateOf)
    const { found, placed } = shared
    const isPlain = NAMES.every((name) => (response as unknown as Functions)[name] === placed[name])
    if (isPlain) (response as Held)[STATE] = begin(found)
    else placeBefore(response, standIns, begin)
  }
}

function placeInPrototype<State>(
  standIns: StandIns<State>,
  stateOf: (response: object) => State | undefined,
): { found: ResponseFunctions; placed: Functions } {
  const { prototype } = ServerResponse
  const found = functionsOf(prototype)
  const placed = {} as Functions
  for (const name of NAMES) {
    const foundOne = found[name] as AnyFunction
    const standIn = standIns[name]
    const value = function (this: ServerResponse, ...args: unknown[]): unknown {
      const state = stateOf(this)
      return state === undefined ? Reflect.apply(foundOne, this, args) : standIn(state, args)
    }
    placed[name] = value
    Object.defineProperty(prototype, name, { configurable: true, writable: true, value })
  }
  const ended = getterOf(prototype, 'writableEnded')
  Object.defineProperty(prototype, 'writableEnded', {
    configurable: true,
    get(this: ServerResponse) {
      const state = stateOf(this)
      return state === undefined ? Reflect.apply(ended, this, []) : standIns.writableEnded(state)
    },
  })
  return { found, placed }
}

function placeBefore<State>(
  response: ServerResponse,
  standIns: StandIns<State>,
  begin: (found: ResponseFunctions) => State,
): void {
  const state = begin(functionsOf(response))
  for (const name of NAMES) {
    const value = (...args: unknown[]): unknown => standIns[name](state, args)
    Object.assign(response, { [name]: value })
  }
  const get = (): boolean => standIns.writableEnded(state)
  Object.defineProperty(response, 'writableEnded', { configurable: true, get })
}

const functionsOf = ({
  writeHead,
  flushHeaders,
  write,
  end,
  destroy,
  emit,
}: ServerResponse): ResponseFunctions => ({ writeHead, flushHeaders, write, end, destroy, emit })

function getterOf(prototype: object | null, name: string): () => unknown {
  for (let at = prototype; at !== null; at = Object.getPrototypeOf(at)) {
    const getter = Object.getOwnPropertyDescriptor(at, name)?.get
    if (getter !== undefined) return getter
  }
  return () => undefined
}
