/**
 * The write-ahead log of a run. Its lines have no line breaks. It contains neither secrets nor account
 * data.
 */
export interface Journal {
  /** Yields all lines in the order of their appends. */
  read(): AsyncIterable<string>
  /** Appends all lines or none. Resolves once they survive a crash of the machine. */
  append(lines: readonly string[]): Promise<void>
  /** Closes the journal, so that another run can open it. */
  close(): Promise<void>
}
