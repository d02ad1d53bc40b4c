import { compare } from '../compare.js'

const FEW = 10
const FRESH = 20_000

const read = (pool) => ({ requests: [{ kind: 'read', pool, status: 200 }] })

/** Reads by the other kinds of policies, and without Express. */
export async function policies(bench) {
  await bench.load.ask({
    pools: {
      oauth2Few: await bench.issuer.mintOAuth2(FEW),
      oauth2Fresh: await bench.issuer.mintOAuth2(FRESH),
    },
  })
  const one = { label: 'one policy', app: 'read', aim: 0.98 }
  const oauth2 = { label: "tokens: 'oauth2'", app: 'oauth2Read' }
  await compare(bench, {
    title: 'reads, few tokens of OAuth 2.0',
    ours: { ...oauth2, ...read('oauth2Few') },
    others: [{ ...one, ...read('few'), label: 'service tokens' }],
  })
  await compare(bench, {
    title: 'reads, every token of OAuth 2.0 new',
    ours: { ...oauth2, ...read('oauth2Fresh') },
    others: [{ ...one, ...read('fresh'), label: 'service tokens' }],
  })
  const two = { label: 'two policies', app: 'twoPolicyRead' }
  for (const [pool, title] of [
    ['few', 'few tokens'],
    ['fresh', 'every token new'],
  ]) {
    await compare(bench, {
      title: `reads, ${title}, two policies`,
      ours: { ...two, ...read(pool) },
      others: [{ ...one, ...read(pool), aim: 0.97 }],
    })
  }
  await compare(bench, {
    title: 'reads, few tokens, without Express',
    ours: { ...read('few'), label: 'authenticate on node:http', app: 'authenticateRead' },
    others: [{ ...read('few'), label: 'serviceAuth on Express', app: 'read', aim: 1.5 }],
  })
}
