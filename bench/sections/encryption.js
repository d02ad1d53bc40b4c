import { compare } from '../compare.js'

/** Idempotent writes with an answer of 1 KB, on Redis: what it costs to encrypt the result. */
export async function encryption(bench) {
  const before = () => bench.redis.client.flushdb()
  const few = { requests: [{ kind: 'write', pool: 'few', status: 201 }], before }
  await compare(bench, {
    title: 'writes of 1 KB, few tokens',
    ours: { ...few, label: 'encryptedStore', app: 'encryptedWrite' },
    others: [
      { ...few, label: 'the same without', app: 'largeWrite', aim: 0.92 },
      { ...few, label: 'one call of AES-GCM by hand', app: 'encryptedByHand' },
    ],
  })
}
