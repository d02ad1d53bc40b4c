import type { TokenSourceErrorCode } from './token-source-error.js'

/** The request that a proof is for. */
export interface ProofRequest {
  /** The method, as `fetch` takes it: `get` is sent as `GET`, and `patch` as it is. */
  readonly method: string
  /** The absolute URL. Query and fragment do not count. */
  readonly url: string
  /** The token that is sent with the request. Default: the one that `token()` returns now. */
  readonly token?: string | undefined
}

/** A source of service tokens: one that `tokenSource` creates, or one that the app implements. */
export interface TokenSource {
  /**
   * Returns a token that can be sent now.
   *
   * @param options.after a token that a receiver refused: the caller needs another one. If none is
   * available now, the result is `after` itself, which means that a repeated request would fail.
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

/** The state of a token source, from memory. JSON-serialisable; holds neither key nor token. */
export interface TokenSourceHealth {
  /**
   * `cold`: no token has been obtained yet. `fresh`: calls get the current token. `stale`: calls still get the
   * current token, and a renewal is due. `expired`: the next call requests another token.
   * `single_use`: no token is stored, every call requests one. `closed`: calls are rejected.
   */
  readonly state: 'cold' | 'fresh' | 'stale' | 'expired' | 'single_use' | 'closed'
  /** Seconds since the current token was requested. */
  readonly ageSeconds?: number
  /** Seconds for which calls still get the current token; 0 once it has expired. */
  readonly usableSeconds?: number
  /** Why the last token request failed; absent once one has succeeded. */
  readonly lastError?: TokenSourceErrorCode
  /** Present with `lastError`: seconds of back-off left; 0 if the next call may send a request. */
  readonly retrySeconds?: number
}
