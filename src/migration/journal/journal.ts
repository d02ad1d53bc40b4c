/**
 * Where a run writes down what it does before it does it. A line has no line break. Holds neither
 * secrets nor account data.
 */
export interface Journal {
  /** All lines, in the order in which they were appended. */
  read(): AsyncIterable<string>
  /** All or none of the lines are kept; resolves when they outlive a crash of the machine. */
  append(lines: readonly string[]): Promise<void>
  /** Ends what it has opened. Another run may open it then. */
  close(): Promise<void>
}
