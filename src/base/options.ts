import { z } from 'zod'
import { nodeFault } from './supported-node.js'

const unsupported = nodeFault()
// Every entry point imports this module.
if (unsupported !== undefined) throw new Error(`express-service-auth: ${unsupported}`)

/** Finds errors that concern several options together. The input has not been checked. */
type CrossOptionCheck = (input: Readonly<Record<string, unknown>>) => readonly string[]

/**
 * Checks the options of a public function when it is called.
 *
 * @throws TypeError naming every faulty path and what it should have been, but no values, which may
 * be secret.
 */
export function parseOptions<Schema extends z.ZodType>(
  subject: string,
  schema: () => Schema,
  input: unknown,
  crossOptionCheck: CrossOptionCheck = () => [],
): z.output<Schema> {
  // `jitless`: options are parsed once, and compiling a parser for them would take longer.
  const result = schema().safeParse(ownMembers(input), { jitless: true })
  const mistake = result.success ? undefined : mistakeOf(input)
  if (mistake !== undefined) throw new TypeError(`${subject}: ${mistake}`)
  const faults = result.error?.issues.flatMap(describeIssue) ?? []
  if (isObject(input)) faults.push(...crossOptionCheck(input))
  if (result.success && faults.length === 0) return result.data
  throw new TypeError(`${subject}: ${[...new Set(faults)].join('; ')}`)
}

/** Names what was passed in place of options: its members would each be called a faulty option. */
function mistakeOf(input: unknown): string | undefined {
  if (!isObject(input)) return undefined
  if ('httpVersion' in input)
    return 'got a request: call the function, and use what it returns as the middleware'
  if (hasFunctions(input, ['reserve']) || hasFunctions(input, ['consume']))
    return 'got a store: pass { store }'
  return undefined
}

/** A copy without a prototype: what other code adds to `Object.prototype` must not become an option. */
const ownMembers = (input: unknown): unknown =>
  isObject(input) && Object.getPrototypeOf(input) === Object.prototype
    ? { __proto__: null, ...input }
    : input

/** Creates a value on first use: building all schemas takes longer than loading the rest of the package. */
export function lazy<T>(create: () => T): () => T {
  let value: T | undefined
  return () => (value ??= create())
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The maximum length of a text from an operator or a caller, such as the reason of a denylist entry. */
export const MAX_TEXT_LENGTH = 256

/** What a text is told that `isShortText` refuses. */
export const SHORT_TEXT_FAULT = `must be a well-formed text of 1 to ${MAX_TEXT_LENGTH} characters`

export const isShortText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length >= 1 &&
  value.length <= MAX_TEXT_LENGTH &&
  value.isWellFormed()

function describeIssue(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => `${pathOf([...issue.path, key])} is not an option`)
  }
  return [`${pathOf(issue.path)} ${issue.message}`]
}

function pathOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return 'the options'
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`
    return text === '' ? String(step) : `${text}.${String(step)}`
  }, '')
}

export const nonEmptyString = (): z.ZodString => {
  const error = 'must be a non-empty string'
  return z.string({ error }).min(1, { error })
}

export const flag = (): z.ZodBoolean => z.boolean({ error: 'must be true or false' })

export const numberBetween = (min: number, max: number, unit: string): z.ZodNumber => {
  const error = `must be a number of ${unit} from ${min} to ${max}`
  return z.number({ error }).min(min, { error }).max(max, { error })
}

export const integerBetween = (min: number, max: number): z.ZodNumber => {
  const error = `must be an integer from ${min} to ${max}`
  return z.number({ error }).int({ error }).min(min, { error }).max(max, { error })
}

/** Any function. Whoever calls it checks what it returns. */
export const functionOf = <F>(): z.ZodCustom<F, F> =>
  z.custom<F>((value) => typeof value === 'function', { error: 'must be a function' })

/** An object of options; an unknown option is an error. */
export const optionsObject = <Shape extends z.core.$ZodLooseShape>(
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> =>
  z.strictObject(shape, {
    error: (issue) => (issue.code === 'invalid_type' ? 'must be an object' : undefined),
  })

/** An object with these functions, own or inherited. */
export const storeWith = <Store extends object>(
  names: readonly (keyof Store & string)[],
): z.ZodCustom<Store, Store> =>
  z.custom<Store>((value) => hasFunctions(value, names), {
    error: `must be a store with ${names.join(', ')}, such as redisStore(redis) returns`,
  })

/** Whether it is an object with these functions, own or inherited. */
export function hasFunctions(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => typeof value[name] === 'function')
}
