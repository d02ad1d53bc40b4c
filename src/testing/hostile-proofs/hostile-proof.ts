/** A request with a token that is bound to a key, and why a receiver must not accept it. */
export interface HostileProof {
  /** What is wrong with it. */
  readonly name: string
  /** The rule that it breaks. */
  readonly why: string
  /** The method of the request. */
  readonly method: string
  /** The request target, to send exactly so. */
  readonly target: string
  /** Names and values of the headers in turn, as `rawHeaders` of Node. */
  readonly headers: readonly string[]
  /**
   * Who must have accepted an earlier copy of the request: this receiver, or another instance of it. The route
   * has `requireSingleUse`, and the instances share its store.
   */
  readonly replays?: 'here' | 'elsewhere'
  /** The status of the refusal. */
  readonly expect: 401
}

/** Where the proofs of the catalogue are sent. */
export interface HostileProofTarget {
  /** One of the `baseUrls` of the receiver's policy. Default: `https://orders.test`. */
  readonly baseUrl?: string | undefined
  /** The method of the requests. Default: `POST`. */
  readonly method?: string | undefined
  /** A path of the receiver, with letters in it. Default: `/orders/4711`. */
  readonly path?: string | undefined
}
