/** The transaction of a request, or something made from it, was used after the answer was complete. */
export class TransactionEndedError extends Error {
  override readonly name = 'TransactionEndedError'

  /** The handle of a transaction makes these. */
  constructor() {
    super(
      'The transaction of this request has ended: await everything that uses it before the answer is sent.',
    )
  }
}
