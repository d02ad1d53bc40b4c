/** The transaction of a request, or something made from it, was used after the answer was complete. */
export class TransactionEndedError extends Error {
  override readonly name = 'TransactionEndedError'

  /** Used by the handle of a transaction. */
  constructor() {
    super(
      'The transaction of this request has ended: await everything that uses it before the answer is sent.',
    )
  }
}
