import { compare, versionOf } from '../table.js'

/** Writes with an idempotency key or a single-use token on Redis, all behind `serviceAuth`. */
export async function writes(bench) {
  // A token counts as consumed until the next turn: there are more tokens than requests in one.
  const before = () => bench.redis.command('FLUSHDB')
  const write = (pool) => ({ request: { kind: 'write', pool, status: 201 }, before })
  await compare(bench, {
    ours: { label: 'idempotent write', app: 'ours/idempotentWrite', ...write('few') },
    others: [
      { label: 'two trips by hand', app: 'peers/writeByHand', ...write('few'), goal: 0.9 },
      {
        label: versionOf('express-idempotency'),
        app: 'peers/expressIdempotency',
        ...write('few'),
        goal: 1.15,
      },
    ],
  })
  await compare(bench, {
    ours: { label: 'single use', app: 'ours/singleUseWrite', ...write('fresh') },
    others: [{ label: 'the same without', app: 'ours/plainWrite', ...write('fresh'), goal: 0.95 }],
  })
}
