import { compare } from '../compare.js'

const WITHOUT_CHANNELS = new URL('../apps/without-channels.js', import.meta.url).href

/** What operators' eyes cost a read: channels that nobody listens to, metrics and a log. */
export async function observers(bench) {
  const few = { requests: [{ kind: 'read', pool: 'few', status: 200 }] }
  await compare(bench, {
    title: 'reads, few tokens, nobody listens',
    ours: { ...few, label: 'channels without a listener', app: 'read' },
    others: [
      {
        ...few,
        label: 'no channels',
        app: 'read',
        flags: ['--import', WITHOUT_CHANNELS],
        aim: 0.99,
      },
    ],
  })
  await compare(bench, {
    title: 'reads, few tokens, metrics and log',
    ours: { ...few, label: 'instrument and logDecisions', app: 'observedRead' },
    others: [{ ...few, label: 'the same without', app: 'read', aim: 0.85 }],
  })
}
