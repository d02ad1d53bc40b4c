import { compare } from '../compare.js'
import { versionOf } from '../table.js'
import { cost } from './cost.js'

const write = (pool) => [{ kind: 'write', pool, status: 201 }]

/** Writes with an idempotency key or a single-use token on Redis, all behind `serviceAuth`. */
export async function writes(bench) {
  // A token counts as consumed until the next turn: there are more tokens than requests in one.
  const before = () => bench.redis.client.flushdb()
  const few = { requests: write('few'), before }
  await compare(bench, {
    title: 'writes, few tokens',
    ours: { ...few, label: 'requireIdempotencyKey', app: 'idempotentWrite' },
    others: [
      { ...few, label: 'two round trips by hand', app: 'writeByHand', aim: 0.88 },
      { ...few, label: 'key by hand', app: 'keyByHand' },
      {
        ...few,
        label: `${versionOf('express-idempotency')}, Redis adapter`,
        app: 'expressIdempotency',
        isPeer: true,
        aim: 1.15,
      },
      { ...few, label: 'bare POST', app: 'plainWrite' },
    ],
  })
  const fresh = { requests: write('fresh'), before }
  await compare(bench, {
    title: 'writes, every token new',
    ours: { ...fresh, label: 'requireSingleUse', app: 'singleUseWrite' },
    others: [{ ...fresh, label: 'the same without', app: 'plainWrite', aim: 0.95 }],
  })
  await cost(bench)
}
