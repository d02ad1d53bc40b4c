import type { ServerResponse } from 'node:http'
import type { SendingFunctions } from './interception.js'

/** Sends a response by the functions that it had before it was held back. */
export interface Sending {
  readonly response: ServerResponse
  readonly found: SendingFunctions
  /**
   * How many of these functions are at work. What an outer middleware calls meanwhile, by way of the
   * response, is meant for them.
   */
  depth: number
  /** Sending has failed. */
  failed(error: unknown): void
}

/** Calls one of the functions. */
export const call = (
  { response, found }: Sending,
  name: keyof SendingFunctions,
  args: readonly unknown[],
): unknown => Reflect.apply(found[name], response, args)

/** Calls one of the functions that send something. */
export function send(
  sending: Sending,
  name: 'writeHead' | 'flushHeaders' | 'write' | 'end',
  args: readonly unknown[],
): unknown {
  sending.depth += 1
  try {
    return call(sending, name, args)
  } finally {
    sending.depth -= 1
  }
}

/** Sends once the promise is settled. */
export function sendAfter(sending: Sending, settled: Promise<void>, deliver: () => void): void {
  const deliverOrFail = (): void => {
    try {
      deliver()
    } catch (error) {
      sending.failed(error)
    }
  }
  settled.then(deliverOrFail, deliverOrFail)
}
