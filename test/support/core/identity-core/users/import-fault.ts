/** The core blames these users of a chunk. `texts` has the core's text by the id of the row. */
export class BlamedFault extends Error {
  override readonly name = 'BlamedFault'
  readonly texts: ReadonlyMap<string, string>

  constructor(texts: ReadonlyMap<string, string>) {
    super([...texts.values()].join('; '))
    this.texts = texts
  }
}

/** The core blames no user and fails the whole chunk with this text. */
export class ChunkFault extends Error {
  override readonly name = 'ChunkFault'
  /** The Java class that direct import names before the text. */
  readonly javaClass: string

  constructor(text: string, javaClass = 'java.lang.Exception') {
    super(text)
    this.javaClass = javaClass
  }
}

/**
 * An error that the core takes for a fault of its database. The core changes no row of the chunk,
 * and tries the chunk again in each run. Direct import answers with the text.
 */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault'
}
