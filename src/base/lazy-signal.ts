/**
 * A signal that is created when it is first read, because few handlers read it.
 *
 * A class, because V8 makes a new hidden class for each object literal with an accessor. That class keeps the
 * object, and with it a whole request, until the next full collection.
 */
export class LazySignal {
  #controller: AbortController | undefined
  #isAborted = false

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#isAborted) this.#controller.abort()
    return this.#controller.signal
  }

  abort(): void {
    this.#isAborted = true
    this.#controller?.abort()
  }
}

/** Has the signal of another object. That object creates its signal only once this one is read. */
export class SignalOf {
  readonly #source: { readonly signal: AbortSignal }

  constructor(source: { readonly signal: AbortSignal }) {
    this.#source = source
  }

  get signal(): AbortSignal {
    return this.#source.signal
  }
}
