import type { z } from 'zod'

/** One operation of the core: what is sent, and how its reply is read. */
export interface Operation<T> {
  readonly method: 'GET' | 'POST'
  /** Without what differs from call to call: it stands in errors. */
  readonly path: string
  /** What comes before `path`: a tenant. */
  readonly prefix?: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object
  readonly time: 'usual' | 'staging'
  readonly maxAnswerBytes: number
  /** The value of a 200; `undefined` when it is not of the operation's form. */
  accept(reply: unknown): Accepted<T> | undefined
  /** The value of a 400 that is an answer; `undefined` when it is none. */
  acceptRefusal?(reply: unknown): Accepted<T> | undefined
  /** The value of a reply that is larger than `maxAnswerBytes`, where that is no fault. */
  readonly whenTooLarge?: T
}

export interface Accepted<T> {
  readonly value: T
}

/** 16 MiB: ids, accounts, roles, tenants with their providers. */
export const MAX_ANSWER_BYTES: number = 16 * 1024 * 1024

/** 128 MiB: what repeats records, of which one may have 64 MiB. */
export const MAX_RECORDS_BYTES: number = 128 * 1024 * 1024

/** Reads a reply by a schema, and gives what is wanted of it. */
export const formed =
  <Schema extends z.ZodType, T>(schema: Schema, wantedOf: (reply: z.output<Schema>) => T) =>
  (reply: unknown): Accepted<T> | undefined => {
    const result = schema.safeParse(reply)
    return result.success ? { value: wantedOf(result.data) } : undefined
  }

/**
 * The path with its query.
 *
 * @throws TypeError when a parameter holds half a character: it would be looked up as another one.
 */
export function addressOf({ prefix = '', path, query = {} }: Operation<unknown>): string {
  const pairs: string[] = []
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (!value.isWellFormed()) throw new TypeError(`${name} must be well-formed Unicode`)
    pairs.push(`${name}=${encodeURIComponent(value)}`)
  }
  return prefix + (pairs.length === 0 ? path : `${path}?${pairs.join('&')}`)
}
