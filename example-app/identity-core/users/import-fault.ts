/** Users of a chunk who are blamed, with the core's text for each, by the id of their row. */
export class BlamedFault extends Error {
  override readonly name = 'BlamedFault'
  readonly texts: ReadonlyMap<string, string>

  constructor(texts: ReadonlyMap<string, string>) {
    super([...texts.values()].join('; '))
    this.texts = texts
  }
}

/** A fault that the core blames on nobody: it fails the whole chunk with this text. */
export class ChunkFault extends Error {
  override readonly name = 'ChunkFault'
  /** The class of Java that direct import names before the text. */
  readonly javaClass: string

  constructor(text: string, javaClass = 'java.lang.Exception') {
    super(text)
    this.javaClass = javaClass
  }
}

/**
 * What the core takes for a fault of its database: it changes no row of the chunk and tries it again
 * in each run. Direct import answers with the text.
 */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault'
}
