import { ServiceAuthError } from './fault.js'

/**
 * The key set or the store is out of reach. Only `Unavailable` becomes a 503; everything else goes to
 * `next(error)`.
 */
export class Unavailable extends ServiceAuthError {
  readonly what: 'key_set' | 'store'

  constructor(what: 'key_set' | 'store', message: string, options?: ErrorOptions) {
    super('unavailable', message, options)
    this.what = what
  }
}
