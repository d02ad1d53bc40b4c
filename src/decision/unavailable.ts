/**
 * Something that a decision needs is out of reach: the key set or the store. The only failure that
 * becomes a 503; every other exception is a fault of the receiver's own.
 */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
  readonly what: 'key_set' | 'store'

  constructor(what: 'key_set' | 'store', message: string, options?: ErrorOptions) {
    super(message, options)
    this.what = what
  }
}
