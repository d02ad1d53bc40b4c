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
  const where = issue?.path.join('.') || 'the input'
  throw new ActionError(`${where}: ${issue?.message ?? 'cannot be read'}`)
}
