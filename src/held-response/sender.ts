import type { ServerResponse } from 'node:http'
import type { ResponseFunctions } from './stand-in.js'

/** Sends a response by its functions as they were found. */
export class Sender {
  readonly #response: ServerResponse
  readonly #found: ResponseFunctions
  #depth = 0

  constructor(response: ServerResponse, found: ResponseFunctions) {
    this.#response = response
    this.#found = found
  }

  /** Calls one of the functions. */
  call(name: keyof ResponseFunctions, args: readonly unknown[]): unknown {
    return Reflect.apply(this.#found[name], this.#response, args)
  }

  /** The same, and `isSending` as long as it is at work. */
  send(name: 'flushHeaders' | 'write' | 'end', args: readonly unknown[]): unknown {
    this.#depth += 1
    try {
      return this.call(name, args)
    } finally {
      this.#depth -= 1
    }
  }

  /** Whether one of them is at work: what an outer middleware then calls is meant for them too. */
  get isSending(): boolean {
    return this.#depth > 0
  }

  /** Sends once the promise has settled. A fault in sending breaks the connection, nothing else. */
  after(settled: Promise<void>, send: () => void): void {
    const sendOrBreak = (): void => {
      try {
        send()
      } catch {
        this.call('destroy', [])
      }
    }
    settled.then(sendOrBreak, sendOrBreak)
  }
}
