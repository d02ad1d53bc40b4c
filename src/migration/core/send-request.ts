import { growingDelayMs } from '../../base/back-off.js'
import { pause } from '../../base/pause.js'
import { askCore, type Core, type CoreAnswer } from '../../client/core/call-core.js'
import { CoreFailure } from '../../client/core/core-failure.js'
import { CoreError } from './core-error.js'
import { type Fault, faultOfAnswer, faultOfFailure } from './core-fault.js'
import { type Accepted, addressOf, type Operation } from './core-operation.js'

/** The core, and the milliseconds that one attempt may take. */
export interface Reach {
  readonly core: Core
  readonly timeoutMs: Readonly<Record<Operation<unknown>['time'], number>>
}

const MAX_TRIES = 3
/** Each try has asked for as long as its time limit allows. */
const BUSY_DELAY = { firstMs: 1000, maxMs: 30_000 }
const READ_DELAY = { firstMs: 100, maxMs: 1000 }

/**
 * What an operation comes to. A read is tried three times where another try may come to more; a write
 * again only when no connection was made.
 *
 * @throws CoreError; the reason of the signal.
 */
export async function ask<T>(
  reach: Reach,
  operation: Operation<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const result = await attempt(reach, operation, signal)
    if ('value' in result) return result.value
    if (!result.isRepeatable || tries === MAX_TRIES) throw result.error
    await pause(growingDelayMs(tries, READ_DELAY), signal)
  }
}

/**
 * The same for a run, which nobody waits for: while the core is busy it waits and asks again, until the
 * signal aborts.
 */
export async function askPatiently<T>(
  reach: Reach,
  operation: Operation<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask(reach, operation, signal)
    } catch (error) {
      if (!(error instanceof CoreError) || error.code !== 'busy') throw error
      await pause(growingDelayMs(tries, BUSY_DELAY), signal)
    }
  }
}

async function attempt<T>(
  { core, timeoutMs }: Reach,
  operation: Operation<T>,
  signal: AbortSignal,
): Promise<Accepted<T> | Fault> {
  const { method, body, time, maxAnswerBytes } = operation
  const asked = { ...operation, isWrite: method !== 'GET' }
  const request = {
    method,
    path: addressOf(operation),
    headers: { accept: 'application/json' },
    ...(body !== undefined && { body }),
    timeoutMs: timeoutMs[time],
    maxAnswerBytes,
    signal,
  }
  try {
    const answer = await askCore(core, request)
    return acceptedOf(answer, operation) ?? faultOfAnswer(answer, asked)
  } catch (error) {
    if (error instanceof CoreFailure) return faultOfFailure(error, asked)
    throw error
  }
}

function acceptedOf<T>(answer: CoreAnswer, operation: Operation<T>): Accepted<T> | undefined {
  const { status, text } = answer
  if (text === undefined) {
    const isOver = status === 200 && answer.fault === 'too_large'
    const { whenTooLarge } = operation
    return isOver && whenTooLarge !== undefined ? { value: whenTooLarge } : undefined
  }
  if (status === 200) return operation.accept(jsonIn(text))
  return status === 400 ? operation.acceptRefusal?.(jsonIn(text)) : undefined
}

/** Whatever its media type says: the core sends the JSON of its errors as `text/html`. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
