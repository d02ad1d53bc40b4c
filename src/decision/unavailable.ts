import { ServiceAuthError } from './fault.js'

/** A decision needs something that is out of reach: the only error that becomes a 503. */
export class Unavailable extends ServiceAuthError {
  readonly what: 'key_set' | 'store'

  constructor(what: 'key_set' | 'store', message: string, options?: ErrorOptions) {
    super('unavailable', message, options)
    this.what = what
  }
}
