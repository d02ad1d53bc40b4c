import type * as z from 'zod'
import { ActionError } from '../ports.js'

/**
 * Reads what came as JSON.
 * @throws {ActionError} when it is not of this shape
 */
export function readInput<Schema extends z.ZodType>(
  schema: Schema,
  input: unknown,
): z.output<Schema> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue?.path.findLast((part) => typeof part === 'string') ?? 'input'
  const isOwn = issue?.message.startsWith('must ')
  throw new ActionError(`the ${String(field)}${isOwn ? '' : ':'} ${issue?.message ?? 'is invalid'}`)
}
