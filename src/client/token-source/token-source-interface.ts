/** The request that a proof is for. */
export interface ProofRequest {
  /** Its method, as it is sent. */
  readonly method: string
  /** Its absolute URL. Query and fragment do not count. */
  readonly url: string
  /** The token that is sent with it. Default: the one that `token()` returns now. */
  readonly token?: string | undefined
}

/** A source of service tokens: one that `tokenSource` creates, or the app's own. */
export interface TokenSource {
  /**
   * Returns a token that can be sent now.
   *
   * @param options.after a token that a receiver refused: the caller needs another one. If none is
   * available now, the result is this same token, which means that a repeated request would fail.
   * @throws TokenSourceError if there is no token at all.
   */
  token(options?: { readonly after?: string }): Promise<string>
  /**
   * Returns a new proof for one request, to send as `DPoP` with the token in `Authorization: DPoP` (RFC 9449).
   * A source without it has tokens that are sent as `Bearer`.
   */
  proof?(request: ProofRequest): Promise<string>
  /** Resolves once a token is available. @throws TokenSourceError if none can be obtained. */
  ready(): Promise<void>
  /** Aborts pending requests; later calls are rejected with the code `closed`. */
  close(): void
}
