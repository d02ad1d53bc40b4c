import { bytesOf } from './bytes.js'

export interface TextIn {
  /** Its place in the value, such as `cause.command.args[]`; `*` replaces a name that may be a secret. */
  readonly path: string
  /** As `bytesOf` returns it. */
  readonly text: string
}

/** Limits the search, because a value may refer to a whole client. */
const MAX_VALUES = 20_000
const PLAIN_NAME = /^[a-z_$][\w$]{0,23}$/i
/** Members of errors that are read even if they are inherited or accessors. */
const ERROR_MEMBERS: readonly string[] = ['name', 'message', 'cause', 'errors']
/** Stack frames are left out, because they would be most of the text to search. */
const STACK_FRAME = /\n {4}at .*/g

interface Step {
  readonly path: string
  readonly value: unknown
}

/**
 * Returns all texts in a value: names and values of its members, enumerable or not, symbols, and the content of
 * maps, sets, bytes and errors with their causes. Does not call accessors, except those of `ERROR_MEMBERS`.
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

/** Returns the names of the members. For an array with numbers, which may be bytes, returns its items. */
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
    ...ownSteps(path, error, (name) => name !== 'stack' && !ERROR_MEMBERS.includes(name)),
    ...ERROR_MEMBERS.map((name) => ({
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
