import type { z } from 'zod'

/** One operation of the core: its request, and how its reply is read. */
export interface Operation<T> {
  readonly method: 'GET' | 'POST'
  /** Without the tenant and the query, because errors contain this path. */
  readonly path: string
  /** The tenant's part of the path, before `path`. */
  readonly prefix?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object
  readonly timeLimit: 'default' | 'staging'
  readonly maxAnswerBytes: number
  /** Returns the value of a 200; `undefined` if the reply does not have the form of the operation. */
  accept(reply: unknown): Accepted<T> | undefined
  /** Returns the value of a 400 that is a valid answer; `undefined` for any other 400. */
  acceptRefusal?(reply: unknown): Accepted<T> | undefined
  /** The value of a reply that is larger than `maxAnswerBytes`, if that is not an error. */
  readonly whenTooLarge?: T
}

/** Wraps a value, because the value itself may be `undefined`. */
export interface Accepted<T> {
  readonly value: T
}

/** 16 MiB, for replies with ids, accounts, roles, or tenants with their providers. */
export const MAX_ANSWER_BYTES: number = 16 * 1024 * 1024

/** 128 MiB, for replies that repeat records, one of which may have 64 MiB. */
export const MAX_RECORDS_BYTES: number = 128 * 1024 * 1024

/** Returns a function that validates a reply with a schema and extracts a value. */
export const bySchema =
  <Schema extends z.ZodType, T>(schema: Schema, extract: (reply: z.output<Schema>) => T) =>
  (reply: unknown): Accepted<T> | undefined => {
    const result = schema.safeParse(reply)
    return result.success ? { value: extract(result.data) } : undefined
  }

/**
 * Returns the path with its query.
 *
 * @throws TypeError if a parameter has a lone surrogate, which would be sent as another character.
 */
export function operationPath({ prefix = '', path, query = {} }: Operation<unknown>): string {
  const pairs: string[] = []
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (!value.isWellFormed()) throw new TypeError(`${name} must be well-formed Unicode`)
    pairs.push(`${name}=${encodeURIComponent(value)}`)
  }
  return prefix + (pairs.length === 0 ? path : `${path}?${pairs.join('&')}`)
}
