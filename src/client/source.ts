/** Where a caller gets its service tokens: what `tokenSource` makes, or a store of the user's own. */
export interface TokenSource {
  /**
   * A token that can be sent now.
   *
   * @param options.after a token that was refused: another than this is asked for.
   * @throws TokenSourceError when there is none.
   */
  token(options?: { readonly after?: string }): Promise<string>
  /** Resolves when a token has been obtained. @throws TokenSourceError when it cannot be. */
  ready(): Promise<void>
  /** Ends what is under way; calls after it are rejected with the code `closed`. */
  close(): void
}
