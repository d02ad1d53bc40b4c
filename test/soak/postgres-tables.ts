import { setTimeout as delay } from 'node:timers/promises'
import type { PostgresServer } from '../support/postgres/postgres.js'

/** Where the receivers' writes and records are. */
export interface Tables {
  /** Keys with another number of effects than one. */
  strangeEffects(): Promise<readonly { readonly key: string; readonly count: number }[]>
  effects(): Promise<number>
  records(): Promise<number>
  /** Bytes of the table of records, with its indexes, for each record in it. */
  bytesOfRecord(): Promise<number>
  /** Of those that are dead, for each that lives. */
  deadRecords(): Promise<number>
}

const NAME = 'service_auth.idempotency'
/** For what vacuum still has to do when the last record has been swept. */
const VACUUM_MS = 20_000

export function lookAt(postgres: PostgresServer): Tables {
  const number = async (text: string): Promise<number> => {
    const [row] = await postgres.query<{ n: string }>(`select (${text})::text as n`)
    return Number(row?.n)
  }
  return {
    strangeEffects: () =>
      postgres.query(
        'select path || key as key, count(*)::int as count from effect group by path, key having count(*) <> 1',
      ),
    effects: () => number('select count(*) from effect'),
    records: () => number(`select count(*) from ${NAME}`),
    bytesOfRecord: () =>
      number(`select pg_total_relation_size('${NAME}') / greatest(count(*), 1) from ${NAME}`),
    async deadRecords() {
      const giveUpAt = performance.now() + VACUUM_MS
      for (;;) {
        await postgres.query(`analyze ${NAME}`)
        const dead = await number(
          `select n_dead_tup / greatest(n_live_tup, 1)::float8 from pg_stat_all_tables where relid = '${NAME}'::regclass`,
        )
        if (dead < 0.1 || performance.now() > giveUpAt) return dead
        await delay(1000)
      }
    },
  }
}
