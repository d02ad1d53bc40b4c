import { bytesOf } from './bytes.js'

export interface TextIn {
  /** Where it stands, such as `cause.command.args[]`; `*` is a name that may itself be a secret. */
  readonly path: string
  /** As bytes. */
  readonly text: string
}

/** What a value leads to may be a whole client. */
const MAX_VALUES = 20_000
const PLAIN_NAME = /^[a-z_$][\w$]{0,23}$/i
/** Where an error's own are no data members, they are read all the same. */
const OF_ERRORS: readonly string[] = ['name', 'message', 'cause', 'errors']
/** A place in the code, which is most of what there is to search otherwise. */
const STACK_FRAME = /\n {4}at .*/g

interface Step {
  readonly path: string
  readonly value: unknown
}

/**
 * All texts that a value holds: names and values of members, enumerable or not, of symbols, maps,
 * sets, bytes and errors with their causes. Accessors are not called.
 */
export function textsIn(value: unknown): TextIn[] {
  const found: TextIn[] = []
  const seen = new Set<object>()
  const steps: Step[] = [{ path: '', value }]
  for (let step = steps.pop(); step !== undefined && seen.size < MAX_VALUES; step = steps.pop()) {
    const { path, value } = step
    if (typeof value === 'string') found.push({ path, text: bytesOf(value) })
    else if (value instanceof Uint8Array) found.push({ path, text: bytesOf(value) })
    else if (typeof value === 'symbol') found.push({ path, text: bytesOf(String(value)) })
    else if (typeof value === 'object' && value !== null && !seen.has(value)) {
      seen.add(value)
      const names = namesIn(value)
      if (names !== '') found.push({ path, text: bytesOf(names) })
      steps.push(...stepsFrom(path, value))
    }
  }
  return found
}

/** The names of its members; of an array of numbers, which may be bytes, the numbers. */
function namesIn(value: object): string {
  if (!Array.isArray(value)) return Reflect.ownKeys(value).map(String).join('\n')
  return value.some((each) => typeof each === 'number') ? value.join(',') : ''
}

function stepsFrom(path: string, value: object): Step[] {
  if (Array.isArray(value)) return value.map((each) => ({ path: `${path}[]`, value: each }))
  if (value instanceof Error) return stepsFromError(path, value)
  const steps = ownSteps(path, value, () => true)
  if (value instanceof Map || value instanceof Set) {
    steps.push(...[...value].map((each: unknown) => ({ path: `${path}[]`, value: each })))
  }
  return steps
}

function stepsFromError(path: string, error: Error): Step[] {
  const { stack } = error
  const top = typeof stack === 'string' ? stack.replace(STACK_FRAME, '') : stack
  return [
    ...ownSteps(path, error, (name) => name !== 'stack' && !OF_ERRORS.includes(name)),
    ...OF_ERRORS.map((name) => ({
      path: below(path, name),
      value: (error as unknown as Record<string, unknown>)[name],
    })),
    { path: below(path, 'stack'), value: top },
  ]
}

function ownSteps(path: string, value: object, isWanted: (name: string) => boolean): Step[] {
  return Reflect.ownKeys(value)
    .filter((key) => typeof key === 'symbol' || isWanted(key))
    .map((key) => ({
      path: below(path, key),
      value: Object.getOwnPropertyDescriptor(value, key)?.value as unknown,
    }))
}

function below(path: string, key: string | symbol): string {
  const name = typeof key === 'string' && PLAIN_NAME.test(key) ? key : '*'
  return path === '' ? name : `${path}.${name}`
}
