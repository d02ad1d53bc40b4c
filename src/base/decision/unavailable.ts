import { ServiceAuthError } from './service-auth-error.js'

/**
 * The key set, a denylist or the store cannot be reached. Only `Unavailable` becomes a 503; everything else goes to
 * `next(error)`.
 */
export class Unavailable extends ServiceAuthError {
  readonly what: 'key_set' | 'denylist' | 'store'

  constructor(what: Unavailable['what'], message: string, options?: ErrorOptions) {
    super('unavailable', message, options)
    this.what = what
  }
}
