/** Where a caller gets its service tokens: what `tokenSource` makes, or one of the user's own. */
export interface TokenSource {
  /**
   * A token that can be sent now.
   *
   * @param options.after a token that was refused: another one is wanted. Where none can be had now,
   * this same one is the result, which tells that sending again is of no use.
   * @throws TokenSourceError when there is none at all.
   */
  token(options?: { readonly after?: string }): Promise<string>
  /** Resolves when a token has been obtained. @throws TokenSourceError when it cannot be. */
  ready(): Promise<void>
  /** Ends what is under way; calls after it are rejected with the code `closed`. */
  close(): void
}
