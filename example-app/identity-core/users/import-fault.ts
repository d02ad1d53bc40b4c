/** Users of a chunk who are to blame, with the core's text for each, by the id of their row. */
export class BlamedFault extends Error {
  override readonly name = 'BlamedFault'
  readonly texts: ReadonlyMap<string, string>

  constructor(texts: ReadonlyMap<string, string>) {
    super([...texts.values()].join('; '))
    this.texts = texts
  }
}

/** A fault that the core lays to nobody: it fails the whole chunk with this text. */
export class ChunkFault extends Error {
  override readonly name = 'ChunkFault'
}
