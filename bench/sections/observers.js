import { compare } from '../compare.js'

/** What metrics and a log cost a read. */
export async function observers(bench) {
  const few = { requests: [{ kind: 'read', pool: 'few', status: 200 }] }
  await compare(bench, {
    title: 'reads, few tokens, metrics and log',
    ours: { ...few, label: 'instrument and logDecisions', app: 'observedRead' },
    others: [{ ...few, label: 'the same without', app: 'read', aim: 0.93 }],
  })
}
