import { LIBRARIES, type OpenLibrary } from '../../stores/postgres/adapters/libraries.js'
import { OPEN_RUNNERS, type OpenRunner } from '../../stores/postgres/adapters/open-runners.js'

/** A library as an application has it, and how its handlers write. */
export type OpenAdapter = Pick<OpenLibrary, 'runner' | 'insert' | 'execute' | 'close'>

export interface Adapter {
  readonly name: string
  /** `max` connections at most. */
  open(url: string, max: number): Promise<OpenAdapter>
}

export const ADAPTERS: readonly Adapter[] = [
  ...OPEN_RUNNERS.map(([name, open]) => ({
    name,
    open: async (url: string, max: number) => adapterOf(open(url, max)),
  })),
  ...Object.entries(LIBRARIES).map(([name, open]) => ({ name, open })),
]

export const PG = ADAPTERS.find(({ name }) => name === 'pg') as Adapter

function adapterOf({ runner, write, end }: OpenRunner): OpenAdapter {
  return {
    runner,
    insert: async (tx, id) => write(tx, `insert into payment (id) values ('${id}')`),
    execute: async (tx, text) => write(tx, text),
    async close() {
      await end()
    },
  }
}
