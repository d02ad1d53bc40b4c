import * as z from 'zod'
import { readInput } from '../input/read-input.js'
import { type CallOrder, RECEIVERS } from '../protocol.js'

const MAX_TEXT_LENGTH = 200
const MAX_PERMISSIONS = 20
const MAX_CALLS_PER_SECOND = 500

const WANTED = `must have 1 to ${MAX_TEXT_LENGTH} characters`
const text = z.string().min(1, WANTED).max(MAX_TEXT_LENGTH, WANTED)

const callOrder = z.strictObject({
  receiver: z.enum(RECEIVERS),
  caller: text,
  audience: text,
  permissions: z.array(text).max(MAX_PERMISSIONS),
  method: z.enum(['GET', 'POST']),
  isTokenReused: z.boolean(),
  binding: z.enum(['none', 'key', 'certificate']).exactOptional(),
  idempotencyKey: z.enum(['none', 'new', 'same']),
  body: z.enum(['usual', 'another']),
  hostileToken: z.string().optional(),
  page: text.optional(),
})

const manyCalls = z.strictObject({ order: callOrder, how: z.enum(['hundred', 'twenty-at-once']) })

const load = z.strictObject({ callsPerSecond: z.int().min(0).max(MAX_CALLS_PER_SECOND) })

/** @throws {ActionError} when it is none */
export const readCallOrder = (input: unknown): CallOrder => readInput(callOrder, input) as CallOrder

/** @throws {ActionError} when it is none */
export const readManyCalls = (input: unknown) =>
  readInput(manyCalls, input) as { order: CallOrder; how: 'hundred' | 'twenty-at-once' }

/** @throws {ActionError} when it is none */
export const readLoad = (input: unknown): { callsPerSecond: number } => readInput(load, input)
