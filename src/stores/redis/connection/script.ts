import { createHash } from 'node:crypto'

/** A Lua script of one key: one atomic step on the server. */
export interface Script {
  readonly source: string
  readonly sha: string
}

export const script = (source: string): Script => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})
